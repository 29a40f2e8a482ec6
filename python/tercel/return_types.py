"""Named result types: tercel.return_types.max is a tuple of values and indices."""

from tercel import _C

_FIELDS = {
    "aminmax": "min max", "cummax": "values indices", "cummin": "values indices", "frexp": "mantissa exponent",
    "geqrf": "a tau", "histogram": "hist bin_edges", "histogramdd": "hist bin_edges", "kthvalue": "values indices",
    "linalg_cholesky_ex": "L info", "linalg_eig": "eigenvalues eigenvectors", "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info", "linalg_ldl_factor": "LD pivots", "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values", "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots", "linalg_lu_factor_ex": "LU pivots info", "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet", "linalg_solve_ex": "result info", "linalg_svd": "U S Vh", "lu_unpack": "P L U",
    "max": "values indices", "median": "values indices", "min": "values indices", "mode": "values indices",
    "nanmedian": "values indices", "qr": "Q R", "slogdet": "sign logabsdet", "sort": "values indices", "svd": "U S V",
    "symeig": "eigenvalues eigenvectors", "topk": "values indices", "triangular_solve": "solution cloned_coefficient",
}

# Calls with out= return a separate type.
_FIELDS.update({f"{name}_out": fields for name, fields in _FIELDS.items() if name != "histogramdd"})

__all__ = list(_FIELDS)


def __getattr__(name):
    if name not in _FIELDS:
        raise AttributeError(f"module 'tercel.return_types' has no attribute '{name}'")
    return _C._return_type(name, _FIELDS[name].split())


def __dir__():
    return [*globals(), *_FIELDS]
