#include <algorithm>
#include <charconv>
#include <limits>

#include "tercel/io/npy_impl.h"
#include "tercel/util/cursor.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
// NumPy leaves room for an array to grow along its slowest dimension without moving its elements.
constexpr size_t kGrowthDigits = 21;
// NumPy's own limit is 10,000; 64 sizes of 20 digits need less.
constexpr size_t kMaxHeader = size_t{1} << 16;
constexpr size_t kMaxDims = 64;

/** The dict literal of a header; errors are at the offset of the file. */
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const CursorContext& context) : text_(text), where_(text, context) {}

  NpyHeader parse() {
    NpyHeader header;
    bool seen[3] = {};
    expect('{', "a dict");
    while (!accept('}')) {
      const size_t start = at_;
      const std::string_view key = string("a key");
      const size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3 || seen[which]) fail(start, "descr, fortran_order and shape once each", key);
      seen[which] = true;
      expect(':', "a colon");
      if (which == 0)
        descr(header);
      else if (which == 1)
        header.fortran = boolean();
      else
        header.sizes = shape();
      if (!accept(',')) {
        expect('}', "a comma or the end of the dict");
        break;
      }
    }
    space();
    if (at_ != text_.size()) fail(at_, "the end of the header after its dict", rest());
    for (const bool key : seen)
      if (!key) fail(0, "descr, fortran_order and shape", text_.substr(0, 80));
    return header;
  }

 private:
  [[noreturn]] void fail(size_t at, std::string_view expected, std::string_view found) const {
    where_.fail_at(where_.context().base_offset + static_cast<int64_t>(at), expected, found);
  }
  std::string_view rest() const { return at_ == text_.size() ? "the end of the header" : text_.substr(at_, 40); }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view what) {
    if (!accept(c)) fail(at_, what, rest());
  }
  bool accept_word(std::string_view word) {
    space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string(std::string_view what) {
    space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(at_, what, rest());
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(at_, what, "a string without an end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) fail(at_, "True or False", rest());
    return false;
  }

  void descr(NpyHeader& header) {
    space();
    const size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '[')
      fail(start, "the descr of a plain number", "a record; load its fields one by one");
    const std::string_view value = string("a descr");
    const char order = value.empty() ? '\0' : value[0];
    const std::string_view name = value.substr(std::min<size_t>(value.size(), 1));
    for (const ElementType& t : element_types())
      if (t.npy != 0 && name == str_cat({t.npy, item_size(t.type)})) header.dtype = t.type;
    const bool known_order = order == '<' || order == '>' || order == '=' || order == '|';
    if (header.dtype == ScalarType::Undefined || !known_order)
      fail(start, "the descr of a number", str_cat({"'", value, "'", meaning(name)}));
    header.swapped = order == '>' && item_size(header.dtype) > 1;
  }

  static std::string_view meaning(std::string_view name) {
    switch (name.empty() ? '\0' : name[0]) {
      case 'O': return ", Python objects, which are a pickle and could run code";
      case 'S':
      case 'a':
      case 'U': return ", strings";
      case 'M':
      case 'm': return ", dates or times";
      case 'V': return ", raw bytes";
      default: return "";
    }
  }

  DimVector shape() {
    DimVector sizes;
    expect('(', "a tuple");
    while (!accept(')')) {
      space();
      const char* const begin = text_.data() + at_;
      int64_t size = 0;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0 || sizes.size() == kMaxDims)
        fail(at_, str_cat({"at most ", kMaxDims, " sizes of 63 bits"}), rest());
      at_ += static_cast<size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2's long
      sizes.push_back(size);
      if (!accept(',')) {
        expect(')', "a comma or the end of the tuple");
        break;
      }
    }
    return sizes;
  }

  std::string_view text_;
  ByteCursor where_;
  size_t at_ = 0;
};

void read_exactly(ByteReader& reader, char* out, size_t bytes, int64_t offset, std::string_view what) {
  for (size_t done = 0; done < bytes;) {
    const size_t count = reader.read_some(out + done, bytes - done);
    if (count == 0)
      throw_error<DataError>({printable(reader.name()), ": byte ", offset, ": expected ", bytes, " bytes of ", what,
                              ", found ", done, " before the end"});
    done += count;
  }
}

}  // namespace

std::string npy_header_of(std::string_view descr, bool fortran, IntSpan sizes) {
  std::string dict = str_cat({"{'descr': ", descr, ", 'fortran_order': ", fortran ? "True" : "False", ", 'shape': ("});
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d > 0) dict += ", ";
    dict += std::to_string(sizes[d]);
  }
  dict += sizes.size() == 1 ? ",), }" : "), }";
  if (!sizes.empty()) dict.append(kGrowthDigits - std::to_string(fortran ? sizes.back() : sizes.front()).size(), ' ');
  // Version 1.0 has two bytes for the length, version 2.0 has four.
  const bool is_long = kMagic.size() + 4 + dict.size() + 1 + kAlignment > 0xffff;
  const size_t length_bytes = is_long ? 4 : 2, front = kMagic.size() + 2 + length_bytes;
  dict.append(kAlignment - (front + dict.size() + 1) % kAlignment, ' ');
  dict += '\n';
  std::string text(kMagic);
  text += is_long ? '\x02' : '\x01';
  text += '\0';
  for (size_t byte = 0; byte < length_bytes; ++byte) text += static_cast<char>(dict.size() >> 8 * byte & 0xff);
  return text + dict;
}

std::string npy_header_text(ScalarType dtype, bool fortran, IntSpan sizes, std::string_view name) {
  const ElementType* type = find_element_type(dtype);
  TERCEL_CHECK(type && type->npy != 0, TypeError, printable(name), ": NumPy has no dtype for ", to_string(dtype));
  const size_t item = item_size(dtype);
  return npy_header_of(str_cat({"'", item == 1 ? '|' : '<', type->npy, item, "'"}), fortran, sizes);
}

NpyHeader read_npy_header(ByteReader& reader, int64_t bytes) {
  char front[12];
  read_exactly(reader, front, 10, 0, "magic, version and length of the header");
  ByteCursor cursor(std::string_view(front, sizeof front), {reader.name()});
  if (cursor.text(kMagic.size(), "magic") != kMagic)
    cursor.fail_at(0, "a .npy file, which starts with \\x93NUMPY", std::string_view(front, kMagic.size()));
  const auto major = cursor.read<uint8_t>("version"), minor = cursor.read<uint8_t>("version");
  if (major < 1 || major > 3 || minor != 0)
    cursor.fail_at(6, "version 1.0, 2.0 or 3.0", str_cat({int{major}, ".", int{minor}}));
  uint32_t length = 0;
  if (major == 1) {
    length = cursor.read<uint16_t>("length");
  } else {
    read_exactly(reader, front + 10, 2, 10, "length of the header");
    length = cursor.read<uint32_t>("length");
  }
  const int64_t start = major == 1 ? 10 : 12;
  const int64_t most = std::min<int64_t>(kMaxHeader, std::max<int64_t>(bytes - start, 0));
  if (length > most) cursor.fail_at(8, str_cat({"a header of at most ", most, " bytes"}), str_cat({length}));
  std::string text(length, '\0');
  read_exactly(reader, text.data(), length, start, "header");
  NpyHeader header = HeaderParser(text, {reader.name(), -1, start}).parse();
  header.data = start + length;
  // For strides the product of the other sizes must fit even if one size is 0.
  header.nbytes = static_cast<int64_t>(item_size(header.dtype));
  bool fits = true, empty = false;
  for (const int64_t size : header.sizes) {
    empty |= size == 0;
    fits &= !__builtin_mul_overflow(header.nbytes, std::max<int64_t>(size, 1), &header.nbytes);
  }
  if (!fits) cursor.fail_at(start, "sizes of 63 bits together", str_cat({IntSpan(header.sizes)}));
  if (empty) header.nbytes = 0;
  if (header.nbytes != bytes - header.data)
    cursor.fail_at(header.data,
                   str_cat({header.nbytes, " bytes for ", IntSpan(header.sizes), " ", to_string(header.dtype)}),
                   str_cat({bytes - header.data, " bytes before the end"}));
  return header;
}

Tensor read_npy(ByteReader& reader, int64_t bytes) {
  const NpyHeader header = read_npy_header(reader, bytes);
  Tensor out = header.fortran ? empty_strided(header.sizes, fortran_strides(header.sizes), header.dtype)
                              : empty(header.sizes, header.dtype);
  if (header.nbytes == 0) return out;
  read_exactly(reader, static_cast<char*>(out.data_ptr()), out.nbytes(), header.data, "elements");
  if (header.swapped) swap_bytes(out.data_ptr(), out.nbytes(), header.dtype);
  const int64_t wrong = header.dtype == kBool ? find_wrong_bool(out.data_ptr(), out.nbytes()) : -1;
  if (wrong >= 0)
    throw_error<DataError>({printable(reader.name()), ": byte ", header.data + wrong,
                            ": expected 0 or 1 for a bool, found ",
                            int{static_cast<const unsigned char*>(out.data_ptr())[wrong]}});
  return out;
}

}  // namespace tercel::io
