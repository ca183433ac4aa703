"""Results of other load testers read, and ours written in their formats.

`read` turns a file into `assay.records.imported.ImportedResult`; `vllm_export` and `llmd_export` write.
"""
