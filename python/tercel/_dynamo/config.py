"""Settings of PyTorch's compiler: any may be set, and none has an effect."""

cache_size_limit = recompile_limit = 8
disable = False
suppress_errors = False
verbose = False
