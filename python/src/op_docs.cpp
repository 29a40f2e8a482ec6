// Descriptions of operations whose entries have no text.
//
// Note [Texts of operations]
// help(tc.exp) shows the signatures and the first of: the entries' descriptions; the line of the table below; the
// comment of the C++ function of that name (tools/make_op_docs.py), in which x is the first argument. A function that
// ends in _ without a text is described as the in-place variant of the one without. The table is for operations without
// a C++ function of their name, and for two operands, which the headers call a and b.
#include "python/src/op_docs.h"

#include <cctype>
#include <map>

#include "python/src/op.h"

namespace tercel::python {

namespace {

struct OpDoc {
  const char* name;
  const char* text;
};

constexpr OpDoc kOwnDocs[] = {
    {"add", "input + alpha * other; logical or for bool."},
    {"sub", "input - alpha * other; not for bool."},
    {"mul", "input * other; logical and for bool."},
    {"div",
     "input / other, in float32 for integers; rounding_mode \"trunc\" rounds towards zero, \"floor\" downwards. "
     "RuntimeError for another mode."},
    {"pow",
     "input to the power exponent. Integers give integers; a negative number as exponent is then a RuntimeError."},
    {"float_power", "input to the power exponent, in float64 or complex128."},
    {"floor_divide", "input / other rounded down. Integers: RuntimeError if other has a zero."},
    {"fmod",
     "Remainder of the division towards zero: it has the sign of input. Integers: RuntimeError if other has a zero."},
    {"remainder",
     "Remainder of the division downwards: it has the sign of other. Integers: RuntimeError if other has a zero."},
    {"rsub", "other - alpha * input."},
    {"eq", "Where input == other; bool. Integers are compared exactly."},
    {"ne", "Where input != other; bool. Integers are compared exactly."},
    {"lt", "Where input < other; bool. Integers are compared exactly."},
    {"le", "Where input <= other; bool. Integers are compared exactly."},
    {"gt", "Where input > other; bool. Integers are compared exactly."},
    {"ge", "Where input >= other; bool. Integers are compared exactly."},
    {"logical_and", "Where both are nonzero; bool."},
    {"logical_or", "Where either is nonzero; bool."},
    {"logical_xor", "Where exactly one of the two is nonzero; bool."},
    {"atan2", "The angle of the point (other, input), in (-pi, pi]."},
    {"hypot", "sqrt(input * input + other * other) without intermediate overflow."},
    {"logaddexp", "log(exp(input) + exp(other)) without intermediate overflow."},
    {"logaddexp2", "log2(2^input + 2^other) without intermediate overflow."},
    {"copysign", "The magnitude of input with the sign of other."},
    {"xlogy", "input * log(other); 0 where input is 0, unless other is NaN."},
    {"special_xlog1py", "input * log(1 + other); 0 where input is 0, unless other is NaN."},
    {"special_zeta",
     "Hurwitz's zeta function: the sum over k >= 0 of (k + other)^-input, for input > 1. No gradient flows to input."},
    {"igamma",
     "Lower regularised incomplete gamma function P(input, other), for numbers >= 0. No gradient flows to input."},
    {"igammac",
     "Upper regularised incomplete gamma function Q(input, other), for numbers >= 0. No gradient flows to input."},
    {"heaviside", "0 where input is negative, 1 where it is positive, values where it is 0."},
    {"nextafter", "The next floating-point number after input in the direction of other."},
    {"gcd", "Greatest common divisor, never negative; gcd(0, 0) is 0. Integers only."},
    {"lcm", "Least common multiple, never negative unless it overflows. Integers only."},
    {"bitwise_and", "Bits set in both; integers and bool only."},
    {"bitwise_or", "Bits set in either; integers and bool only."},
    {"bitwise_xor", "Bits set in exactly one of the two; integers and bool only."},
    {"bitwise_left_shift",
     "input * 2^other of integers; 0 for a shift that is negative or not smaller than the width."},
    {"bitwise_right_shift",
     "input / 2^other of integers, rounded down; any other shift leaves only the sign: 0 or -1."},
    {"ldexp", "input * 2^other."},
    {"lerp", "input + weight * (end - input)."},
    {"addcmul", "input + value * tensor1 * tensor2, in one pass."},
    {"addcdiv", "input + value * tensor1 / tensor2, in one pass."},
    {"isclose",
     "Where |input - other| <= atol + rtol * |other|, or both are the same infinity, or with equal_nan both NaN. "
     "RuntimeError for two dtypes."},
    {"isposinf", "Where input is infinite and positive."},
    {"isneginf", "Where input is infinite and negative."},
    {"deg2rad", "Degrees to radians."},
    {"rad2deg", "Radians to degrees."},
    {"special_ndtr", "The normal distribution function."},
    {"special_ndtri", "The inverse of the normal distribution function."},
    {"special_log_ndtr", "The logarithm of the normal distribution function, exact also where that is small."},
    {"i0", "Modified Bessel function of the first kind, of order 0."},
    {"special_i0e", "Modified Bessel function of the first kind, of order 0, times exp(-|input|)."},
    {"special_i1", "Modified Bessel function of the first kind, of order 1."},
    {"special_i1e", "Modified Bessel function of the first kind, of order 1, times exp(-|input|)."},
    {"special_bessel_j0", "Bessel function of the first kind, of order 0."},
    {"special_bessel_j1", "Bessel function of the first kind, of order 1."},
    {"special_bessel_y0", "Bessel function of the second kind, of order 0; NaN below 0."},
    {"special_bessel_y1", "Bessel function of the second kind, of order 1; NaN below 0."},
    {"special_modified_bessel_k0", "Modified Bessel function of the second kind, of order 0; NaN below 0."},
    {"special_modified_bessel_k1", "Modified Bessel function of the second kind, of order 1; NaN below 0."},
    {"special_scaled_modified_bessel_k0", "Modified Bessel function of the second kind, of order 0, times exp(input)."},
    {"special_scaled_modified_bessel_k1", "Modified Bessel function of the second kind, of order 1, times exp(input)."},
    {"special_chebyshev_polynomial_t",
     "Chebyshev's polynomial of the first kind, of degree n; 0 of a negative degree."},
    {"special_chebyshev_polynomial_u",
     "Chebyshev's polynomial of the second kind, of degree n; 0 of a negative degree."},
    {"special_chebyshev_polynomial_v",
     "Chebyshev's polynomial of the third kind, of degree n; 0 of a negative degree."},
    {"special_chebyshev_polynomial_w",
     "Chebyshev's polynomial of the fourth kind, of degree n; 0 of a negative degree."},
    {"special_shifted_chebyshev_polynomial_t",
     "Chebyshev's polynomial of the first kind at 2 * input - 1, of degree n."},
    {"special_shifted_chebyshev_polynomial_u",
     "Chebyshev's polynomial of the second kind at 2 * input - 1, of degree n."},
    {"special_shifted_chebyshev_polynomial_v",
     "Chebyshev's polynomial of the third kind at 2 * input - 1, of degree n."},
    {"special_shifted_chebyshev_polynomial_w",
     "Chebyshev's polynomial of the fourth kind at 2 * input - 1, of degree n."},
    {"special_hermite_polynomial_h",
     "Hermite's polynomial as physicists define it, of degree n; 0 of a negative degree."},
    {"special_hermite_polynomial_he",
     "Hermite's polynomial as statisticians define it, of degree n; 0 of a negative degree."},
    {"special_laguerre_polynomial_l", "Laguerre's polynomial of degree n; 0 of a negative degree."},
    {"special_legendre_polynomial_p", "Legendre's polynomial of degree n; 0 of a negative degree."},
    {"clip", "Alias of clamp()."},
    {"min",
     "The minimum; NaN if there is one. With a dimension, also its index. RuntimeError (IndexError with a dimension) "
     "for "
     "no elements."},
    {"max",
     "The maximum; NaN if there is one. With a dimension, also its index. RuntimeError (IndexError with a dimension) "
     "for "
     "no elements."},
    {"amin",
     "The minimum along dimensions; NaN if there is one. Equal values share the gradient. IndexError for no elements."},
    {"amax",
     "The maximum along dimensions; NaN if there is one. Equal values share the gradient. IndexError for no elements."},
    {"argmin", "The index of the minimum along a dimension, int64; without a dimension its index in row-major order."},
    {"sum",
     "The sum of all elements, or along dimensions; in int64 for integers and bool. With a dtype, elements are "
     "converted to it first."},
    {"var_mean", "The variance, divided by n - correction, and the mean; of all elements, or along dimensions."},
    {"std_mean",
     "The standard deviation, divided by n - correction, and the mean; of all elements, or along dimensions."},
    {"logsumexp",
     "log(sum(exp(input))) along dimensions, without overflow; in float32 for integers. -inf for no elements."},
    {"log_softmax",
     "input - log(sum(exp(input))) along a dimension, without overflow. Floating input (NotImplementedError), or a "
     "floating dtype."},
    {"sort", "The elements of a dimension in sorted order, and their original indices."},
    {"dist", "The p-norm of input - other, broadcast."},
    {"pdist", "The p-norms of the differences of all pairs of rows i < j of input [n, d], as a vector."},
    {"cdist", "p-norms of the differences of all rows of x1 [..., n, d] and x2 [..., m, d]: [..., n, m]."},
    {"pairwise_distance", "The p-norm of x1 - x2 + eps along the last dimension."},
    {"cosine_similarity", "x1 x2 / (|x1| |x2|) along a dimension, each norm at least eps; x1 and x2 are broadcast."},
    {"trapezoid",
     "The integral of y along a dimension by the trapezoidal rule, with samples dx apart or at positions x."},
    {"trapz", "Alias of trapezoid()."},
    {"gradient",
     "An estimate of the derivative along each dimension: central differences, at the ends one-sided ones of "
     "edge_order "
     "1 or 2. spacing: distances, or the samples' positions."},
    {"histogram",
     "The number of elements, or the sum of weights, in each bin, and the bins' edges; density divides by the sum and "
     "each width."},
    {"matmul", "Vector, matrix and batched products by NumPy's rules."},
    {"mm", "Matrix product of input [n, k] and mat2 [k, m]."},
    {"bmm", "Products of pairs of matrices: input [batch, n, k], mat2 [batch, k, m]."},
    {"mv", "The matrix input [n, k] times the vector vec [k]."},
    {"inner", "Sums of products over the last dimension of both; scalars multiply."},
    {"outer", "input [n] as a column times vec2 [m] as a row."},
    {"ger", "Alias of outer()."},
    {"kron", "The Kronecker product: every element of input times other; sizes multiply."},
    {"addmm", "beta * input + alpha * (mat1 @ mat2). With beta = 0 input is not read."},
    {"addmv", "beta * input + alpha * (mat @ vec). With beta = 0 input is not read."},
    {"addr", "beta * input + alpha * outer(vec1, vec2). With beta = 0 input is not read."},
    {"addbmm", "beta * input + alpha * the sum of the products of pairs of matrices. With beta = 0 input is not read."},
    {"baddbmm", "beta * input + alpha * bmm(batch1, batch2). With beta = 0 input is not read."},
    {"bilinear",
     "sum_ij input1_i weight_oij input2_j + bias_o: input1 [..., n], input2 [..., m], weight [out, n, m], bias [out]."},
    {"linear", "input [..., in] @ weight^T + bias: weight [out, in], bias [out] or None."},
    {"cross", "Cross product of vectors of 3 elements along a dimension; the other dimensions are broadcast."},
    {"det", "The determinant of square matrices [..., n, n]."},
    {"slogdet", "Sign (0 if singular) and logarithm of the magnitude (-inf if singular) of the determinant."},
    {"inverse", "The inverse of square matrices [..., n, n]; linalg.LinAlgError for a singular one."},
    {"pinverse", "The Moore-Penrose pseudoinverse; singular values up to rcond * the largest count as zero."},
    {"matrix_power", "Square matrices [..., n, n] to an integer power; a negative power is that of the inverse."},
    {"matrix_exp", "The exponential of square matrices."},
    {"cholesky",
     "L with L L^H = input, or U = L^H if upper; input [..., n, n] is read in one triangle. LinAlgError unless it is "
     "positive definite."},
    {"cholesky_inverse", "The inverse of A, given its Cholesky factor input."},
    {"cholesky_solve", "X with A X = input, given A's Cholesky factor input2."},
    {"qr", "input [..., m, n] = Q R; with some Q is [..., m, min(m, n)], else [..., m, m]."},
    {"svd", "input = U diag(S) V^H with S in descending order; with some, U and V have min(m, n) columns."},
    {"orgqr", "The columns of the product of reflectors that geqrf() gave: input [..., m, n], input2 [..., k]."},
    {"geqrf", "R above and reflectors below the diagonal of one matrix, and tau [..., min(m, n)]; not differentiable."},
    {"lu_solve", "X with A X = input, from the factors and pivots of A that linalg.lu_factor() gave."},
    {"triangular_solve", "X with A X = input for a triangular A [..., n, n], and a copy of A."},
    {"linalg_cholesky_ex",
     "cholesky() and info, which is not 0 where the matrix is not positive definite; check_errors makes that an "
     "error."},
    {"linalg_cond",
     "norm(input) * norm(inverse); inf for a singular matrix. p None: the ratio of the largest singular value to the "
     "smallest."},
    {"linalg_cross", "Cross product of vectors of 3 elements along a dimension; the other dimensions are broadcast."},
    {"linalg_det", "The determinant of square matrices A [..., n, n]."},
    {"linalg_diagonal", "A view of the diagonals of two dimensions of A, the last two by default."},
    {"linalg_eigvals", "The complex eigenvalues of any square matrix, in no order."},
    {"linalg_eigvalsh",
     "The real eigenvalues of symmetric (Hermitian) matrices, ascending; UPLO \"L\" or \"U\" is the triangle that is "
     "read."},
    {"linalg_householder_product",
     "The first columns of the product of the reflectors in input [..., m, n] and tau [..., k] (see geqrf())."},
    {"linalg_inv", "The inverse of square matrices A [..., n, n]; LinAlgError for a singular one."},
    {"linalg_inv_ex", "inv() and info, which is not 0 where a matrix is singular; check_errors makes that an error."},
    {"linalg_ldl_factor", "input = L D L^T (hermitian: L D L^H), and pivots, for ldl_solve(); not differentiable."},
    {"linalg_ldl_factor_ex",
     "ldl_factor() and info, which is not 0 where it failed; check_errors makes that an error."},
    {"linalg_ldl_solve", "X with A X = B from ldl_factor(A); differentiable in B."},
    {"linalg_lstsq",
     "X that minimizes |input X - b|, with minimal |X| among those; residuals, rank and singular values as the driver "
     "gives them (\"gelsy\", \"gels\", \"gelsd\", \"gelss\")."},
    {"linalg_lu_factor_ex",
     "lu_factor() and info, which is not 0 where a matrix is singular; check_errors makes that an error."},
    {"linalg_lu_solve", "X with A X = B (left) or X A = B, from lu_factor(A); adjoint takes A^H."},
    {"linalg_matmul", "matmul()."},
    {"linalg_matrix_norm",
     "ord 1, -1: largest, smallest sum of a column's magnitudes; inf, -inf: of a row's; 2, -2: largest, smallest "
     "singular value; \"fro\": root of the sum of squares; \"nuc\": sum of singular values."},
    {"linalg_matrix_power",
     "Square matrices [..., n, n] to an integer power; a negative power is that of the inverse."},
    {"linalg_norm",
     "vector_norm() for one dimension or none, matrix_norm() for two dimensions; without ord the 2-norm of all."},
    {"linalg_solve_ex", "solve() and info, which is not 0 where A is singular; check_errors makes that an error."},
    {"linalg_solve_triangular",
     "X with A X = B (left) or X A = B for triangular A; unitriangular: the diagonal counts as ones. A zero on it "
     "gives "
     "infinities."},
    {"linalg_tensorinv", "X with tensordot(X, input, input.dim() - ind) the identity."},
    {"linalg_tensorsolve", "X with tensordot(input, X) = other, after dims of input have moved to its end."},
    {"linalg_vecdot", "Sums of products along a dimension, x conjugated; the other dimensions are broadcast."},
    {"linalg_vector_norm",
     "(sum |input|^ord)^(1 / ord) over dim (None: all); ord 0 counts what is not zero, inf and -inf take the largest "
     "and smallest."},
    {"zeros", "A tensor of zeros, row-major."},
    {"ones", "A tensor of ones, row-major."},
    {"full", "A tensor filled with a value; its dtype is the value's unless given."},
    {"empty_strided", "Uninitialised, with given strides, on a storage of the smallest sufficient size."},
    {"empty_like",
     "Uninitialised, of input's sizes; dtype, device and order of dimensions in memory are input's unless given."},
    {"zeros_like", "Zeros of input's sizes; dtype, device and order of dimensions in memory are input's unless given."},
    {"ones_like", "Ones of input's sizes; dtype, device and order of dimensions in memory are input's unless given."},
    {"full_like",
     "A value in input's sizes; dtype, device and order of dimensions in memory are input's unless given."},
    {"rand_like", "Uniform random numbers in [0, 1) of input's sizes and, unless given, dtype."},
    {"randn_like", "Standard normal random numbers of input's sizes and, unless given, dtype."},
    {"new_empty", "Uninitialised, of other sizes; dtype and device are the tensor's unless given."},
    {"new_empty_strided", "Uninitialised, of other sizes and strides; dtype and device are the tensor's unless given."},
    {"new_full", "A tensor filled with a value; dtype and device are the tensor's unless given."},
    {"new_ones", "A tensor of ones; dtype and device are the tensor's unless given."},
    {"new_zeros", "A tensor of zeros; dtype and device are the tensor's unless given."},
    {"triu_indices",
     "Row and column indices [2, n] of the elements that triu() keeps in a row x col matrix, in row-major order."},
    {"bartlett_window",
     "The triangular window of a length; periodic: for use in transforms. RuntimeError for a negative length."},
    {"blackman_window",
     "Blackman's window of a length; periodic: for use in transforms. RuntimeError for a negative length."},
    {"hamming_window",
     "alpha - beta * cos(2 pi i / n), Hamming's window of a length; periodic: for use in transforms."},
    {"hann_window", "Hann's window of a length; periodic: for use in transforms. RuntimeError for a negative length."},
    {"kaiser_window",
     "Kaiser's window of a length; periodic: for use in transforms. RuntimeError for a negative length."},
    {"binomial", "Numbers of successes in count trials of probability prob; both floating-point, of equal sizes."},
    {"cauchy_", "Random numbers of the Cauchy distribution, in place."},
    {"exponential_", "Random numbers of the exponential distribution of rate lambd, in place."},
    {"geometric_", "Numbers of trials up to the first success with probability p, in place."},
    {"log_normal_", "exp() of normal random numbers of a mean and a standard deviation, in place."},
    {"bool", "The tensor in dtype bool; itself if it is that."},
    {"byte", "The tensor in dtype uint8; itself if it is that."},
    {"char", "The tensor in dtype int8; itself if it is that."},
    {"short", "The tensor in dtype int16; itself if it is that."},
    {"int", "The tensor in dtype int32; itself if it is that."},
    {"long", "The tensor in dtype int64; itself if it is that."},
    {"half", "The tensor in dtype float16; itself if it is that."},
    {"bfloat16", "The tensor in dtype bfloat16; itself if it is that."},
    {"cdouble", "The tensor in dtype complex128; itself if it is that."},
    {"cfloat", "The tensor in dtype complex64; itself if it is that."},
    {"float", "The tensor in dtype float32; itself if it is that."},
    {"double", "The tensor in dtype float64; itself if it is that."},
    {"cpu", "The tensor itself, since the CPU is the only device."},
    {"type_as", "The tensor in other's dtype; itself if it is that."},
    {"clone",
     "A copy with gradients; memory_format preserve_format keeps the order of dimensions in memory of a dense tensor."},
    {"contiguous", "The tensor itself if it is contiguous in the format, else a contiguous copy."},
    {"dim", "The number of dimensions."},
    {"ndimension", "The number of dimensions."},
    {"numel", "The number of elements."},
    {"nelement", "The number of elements."},
    {"element_size", "The size of an element in bytes."},
    {"storage_offset", "The offset of the first element in the storage, in elements."},
    {"size", "The sizes, or one of them. IndexError for a dimension that does not exist."},
    {"stride", "The strides in elements, or one of them. IndexError for a dimension that does not exist."},
    {"get_device", "The index of the device; -1 on the CPU."},
    {"tolist", "The elements as nested lists of numbers; of a tensor without dimensions the number."},
    {"has_names", "False: dimensions have no names."},
    {"is_complex", "Whether the dtype is complex."},
    {"is_floating_point", "Whether the dtype is floating."},
    {"is_signed", "Whether the dtype is signed."},
    {"is_conj", "Whether the tensor is a lazy conjugate: always False."},
    {"is_neg", "Whether the tensor is a lazy negation: always False."},
    {"is_distributed", "False."},
    {"is_pinned", "Whether the memory is page-locked: always False."},
    {"is_contiguous", "Whether the strides are those of a new tensor in the format."},
    {"is_nonzero", "Whether the only element is nonzero. RuntimeError unless there is exactly one."},
    {"is_same_size", "Whether both have the same sizes."},
    {"is_set_to", "Whether both have the same storage, offset, sizes and strides."},
    {"resolve_conj", "The tensor itself."},
    {"resolve_neg", "The tensor itself."},
    {"as_strided_copy", "as_strided() as a copy."},
    {"alias_copy", "A copy, with gradients."},
    {"detach_copy", "detach() as a copy."},
    {"t_copy", "t() as a copy."},
    {"diagonal_copy", "diagonal() as a copy."},
    {"expand_copy", "expand() as a copy."},
    {"permute_copy", "permute() as a copy."},
    {"select_copy", "select() as a copy."},
    {"slice_copy", "slice() as a copy."},
    {"squeeze_copy", "squeeze() as a copy."},
    {"transpose_copy", "transpose() as a copy."},
    {"unbind_copy", "unbind() as copies."},
    {"unfold_copy", "unfold() as a copy."},
    {"unsqueeze_copy", "unsqueeze() as a copy."},
    {"view_copy", "view() as a copy."},
    {"narrow_copy", "narrow() as a copy."},
    {"select_scatter",
     "A copy of input in which select(dim, index) is src, which has the sizes of that part (RuntimeError)."},
    {"slice_scatter",
     "A copy of input in which slice(dim, start, end, step) is src, which has the sizes of that part (RuntimeError)."},
    {"diagonal_scatter", "A copy of input in which the diagonal is src, which has its sizes (RuntimeError)."},
    {"adjoint", "The last two dimensions swapped, and complex numbers conjugated."},
    {"swapaxes", "Alias of transpose(), with NumPy's name."},
    {"swapdims", "Alias of transpose()."},
    {"view_as", "view() with other's sizes."},
    {"reshape_as", "reshape() to other's sizes."},
    {"expand_as", "expand() to other's sizes."},
    {"broadcast_to", "expand()."},
    {"hsplit",
     "tensor_split() along dimension 1 (0 of a vector); a number of sections must divide the size (RuntimeError)."},
    {"vsplit", "tensor_split() along dimension 0; a number of sections must divide the size (RuntimeError)."},
    {"dsplit", "tensor_split() along dimension 2; a number of sections must divide the size (RuntimeError)."},
    {"slice",
     "Every step-th element of a dimension from start to end (exclusive), with the rules of Python's slices: negative "
     "and out-of-range bounds, negative steps. A view."},
    {"masked_fill", "value where mask (bool, broadcast to input) is true, else input."},
    {"repeat_interleave",
     "Repeats each slice i of a dimension repeats or repeats[i] times; without a dimension, the elements in row-major "
     "order."},
    {"sum_to_size", "Sums over the dimensions in which size would be broadcast to the tensor's sizes."},
    {"resize_as_", "resize_() to the template's sizes."},
    {"set_",
     "Makes the tensor a view of a storage with an offset in elements, sizes and strides; or of another tensor's "
     "storage, with its layout."},
    {"true_divide", "div() without rounding."},
    {"fold",
     "Adds patches [n, channels * kernel, windows] at their positions in images of output_size; the reverse of "
     "unfold()."},
    {"adaptive_max_pool1d", "The maximum of each of output_size windows of nearly equal size, and its index."},
    {"adaptive_max_pool2d", "The maximum of each of output_size windows of nearly equal size, and its index."},
    {"adaptive_max_pool3d", "The maximum of each of output_size windows of nearly equal size, and its index."},
    {"max_pool1d_with_indices", "max_pool1d(), and the index of each window's maximum in the flattened image."},
    {"max_pool2d_with_indices", "max_pool2d(), and the index of each window's maximum in the flattened image."},
    {"max_pool3d_with_indices", "max_pool3d(), and the index of each window's maximum in the flattened image."},
    {"conv1d",
     "Cross-correlation: input [n, channels, length], weight [out, channels / groups, kernel], bias [out] or None. "
     "RuntimeError for sizes that do not fit."},
    {"conv2d",
     "Cross-correlation: input [n, channels, height, width], weight [out, channels / groups, kh, kw], bias [out] or "
     "None. RuntimeError for sizes that do not fit."},
    {"conv3d",
     "Cross-correlation: input [n, channels, depth, height, width], weight [out, channels / groups, kd, kh, kw], bias "
     "[out] or None. RuntimeError for sizes that do not fit."},
    {"conv_transpose1d",
     "The gradient of conv1d() as an operation: input [n, channels, length], weight [channels, out / groups, kernel]."},
    {"conv_transpose2d",
     "The gradient of conv2d() as an operation: input [n, channels, height, width], weight [channels, out / groups, "
     "kh, kw]."},
    {"conv_transpose3d",
     "The gradient of conv3d() as an operation: input [n, channels, depth, height, width], weight [channels, out / "
     "groups, kd, kh, kw]."},
    {"batch_norm",
     "(input - mean) / sqrt(var + eps) * weight + bias for each channel, dimension 1; the rest are [channels] or None. "
     "RuntimeError for one value per channel in training."},
    {"binary_cross_entropy_with_logits",
     "-(y log p + (1 - y) log(1 - p)) with p = sigmoid(input), exact for large numbers too; times weight, the first "
     "term times pos_weight; both broadcast."},
    {"cosine_embedding_loss",
     "1 - cos(input1, input2) where target is 1, max(0, cos(input1, input2) - margin) where it is -1."},
    {"margin_ranking_loss", "max(0, -target * (input1 - input2) + margin)."},
    {"mse_loss", "(input - target)^2, reduced."},
    {"l1_loss", "|input - target|, reduced."},
    {"smooth_l1_loss", "d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2; reduced."},
    {"pixel_unshuffle", "The reverse of pixel_shuffle(): blocks of r x r pixels become channels."},
    {"batched_embedding_bag",
     "Looks up the bags of many slots at once: keys [n], row_offsets [batch * slots + 1] -> [batch, slots, dim]; one "
     "weight [rows, dim] for all slots, or one for each. Gradients are row gradients."},
};

constexpr OpDoc kHeaderDocs[] = {
#include "python/src/op_docs.inc"
};

using Docs = std::map<std::string_view, std::string_view>;

Docs docs_of(Span<OpDoc> table) {
  Docs docs;
  for (const OpDoc& doc : table) docs.emplace(doc.name, doc.text);
  return docs;
}

std::string_view find(const Docs& docs, std::string_view name) {
  const auto found = docs.find(name);
  return found == docs.end() ? std::string_view() : found->second;
}

bool is_letter(char c) { return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_'; }

/** The text with each word `x` as the first argument's name. */
std::string with_argument(std::string_view text, std::string_view argument) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_word =
        text[i] == 'x' && (i == 0 || !is_letter(text[i - 1])) && (i + 1 == text.size() || !is_letter(text[i + 1]));
    if (is_word)
      out += argument;
    else
      out += text[i];
  }
  return out;
}

}  // namespace

std::string op_doc(std::string_view name, std::string_view argument) {
  static const Docs own = docs_of(kOwnDocs), headers = docs_of(kHeaderDocs);
  if (const std::string_view text = find(own, name); !text.empty()) return std::string(text);
  if (name.ends_with('_')) {
    const std::string base = op_doc(name.substr(0, name.size() - 1), argument);
    if (!base.empty()) return base + " In place; returns " + std::string(argument) + ".";
  }
  return with_argument(find(headers, name), argument);
}

}  // namespace tercel::python
