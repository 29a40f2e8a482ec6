"""Types of the sizes that layers take, for annotations."""

from typing import List, Optional, Tuple, Union

from tercel._C import Tensor

_size_any_t = Union[int, Tuple[int, ...]]
_size_1_t = Union[int, Tuple[int]]
_size_2_t = Union[int, Tuple[int, int]]
_size_3_t = Union[int, Tuple[int, int, int]]
_size_4_t = Union[int, Tuple[int, int, int, int]]
_size_5_t = Union[int, Tuple[int, int, int, int, int]]
_size_6_t = Union[int, Tuple[int, int, int, int, int, int]]
_size_any_opt_t = Union[Optional[int], Tuple[Optional[int], ...]]
_size_2_opt_t = Union[Optional[int], Tuple[Optional[int], Optional[int]]]
_size_3_opt_t = Union[Optional[int], Tuple[Optional[int], Optional[int], Optional[int]]]
_ratio_any_t = Union[float, Tuple[float, ...]]
_ratio_2_t = Union[float, Tuple[float, float]]
_ratio_3_t = Union[float, Tuple[float, float, float]]
_tensor_list_t = Union[Tensor, List[Tensor]]
