"""The loop: what to do next is asked of `assay.plan`, done here, and recorded."""
