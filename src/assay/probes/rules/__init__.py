"""One small function a finding: what is wrong with a machine, with the values and a remedy; None when nothing is."""
