#include "tercel/io/pt.h"

#include <algorithm>

#include "tercel/core/alignment.h"
#include "tercel/io/elements_impl.h"
#include "tercel/io/pickle_impl.h"
#include "tercel/io/zip_impl.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr std::string_view kProgram = "/data.pkl";
constexpr std::string_view kFolder = "archive";
// torch's alignment, so that a mapped file can be used directly.
constexpr size_t kAlignment = 64;
// A hundred thousand tensors need a fifth of it.
constexpr int64_t kMaxProgram = int64_t{64} << 20;

class Archive {
 public:
  Archive(const std::string& path, const PtOptions& options)
      : path_(path), zip_((refuse_old(path), path), 0, "limit"), program_(find_program()) {
    folder_ = program_.name.substr(0, program_.name.size() - kProgram.size());
    if (zip_.find(folder_ + "/constants.pkl"))
      fail(program_, "a file written by torch.save()", "a TorchScript program, which torch.jit.load() reads");
    if (const ZipEntry* order = zip_.find(folder_ + "/byteorder")) {
      if (order->size > 6) fail(*order, "little or big", "something else");
      const std::string text = zip_.read(stored(*order));
      if (text != "little" && text != "big") fail(*order, "little or big", "'" + printable(text) + "'");
      swapped_ = text == "big";
    }
    if (options.mmap) map_ = std::make_shared<const MappedFile>(zip_.file());
  }

  Value read() {
    if (program_.size > kMaxProgram)
      fail(program_, str_cat({"at most ", format_bytes(kMaxProgram)}), format_bytes(program_.size));
    const std::string name = str_cat({path_, ": member '", program_.name, "'"});
    const std::string bytes = zip_.read(stored(program_));
    return unpickle(bytes, name, [this](std::string_view key, int64_t nbytes, ScalarType dtype) {
      return load_storage(key, nbytes, dtype);
    });
  }

 private:
  [[noreturn]] void fail(const ZipEntry& entry, std::string_view expected, std::string_view found) const {
    throw_error<DataError>({printable(path_), ": byte ", entry.header, ": member '", printable(entry.name),
                            "': expected ", expected, ", found ", found});
  }

  /** Formats of torch before 1.6, by their first bytes. */
  static void refuse_old(const std::string& path) {
    const File file = File::open_read(path);
    char front[262];
    const std::string_view text(front, file.pread_some(front, sizeof front, 0));
    constexpr std::string_view kMagicNumber(
        "\x80\x02\x8a\nl\xfc\x9c"
        "F\xf9 j\xa8P\x19",
        14);
    const bool pickled = text.starts_with(kMagicNumber), tar = text.size() == 262 && text.substr(257) == "ustar";
    TERCEL_CHECK(!pickled && !tar, DataError, printable(path), ": byte 0: expected a zip archive, found a ",
                 tar ? "tar archive" : "plain pickle",
                 ", as torch wrote before 1.6: load and save it with a newer torch first");
  }

  const ZipEntry& find_program() const {
    for (const ZipEntry& entry : zip_.entries())
      if (entry.name.ends_with(kProgram) && entry.name.find('/') == entry.name.size() - kProgram.size()) return entry;
    throw_error<DataError>({printable(path_),
                            ": byte 0: expected an archive that torch.save() wrote, found one without FOLDER",
                            kProgram});
  }

  const ZipEntry& stored(const ZipEntry& entry) const {
    if (entry.deflated) fail(entry, "a stored member, as torch writes", "a deflated one");
    return entry;
  }

  Storage load_storage(std::string_view key, int64_t nbytes, ScalarType dtype) const {
    const ZipEntry* entry = zip_.find(str_cat({folder_, "/data/", key}));
    if (!entry) fail(program_, str_cat({"storage '", printable(key), "' in the archive"}), "no such member");
    if (entry->size != nbytes) fail(*entry, str_cat({nbytes, " bytes"}), str_cat({entry->size}));
    static_cast<void>(stored(*entry));
    if (map_ && dtype != kBool && !swapped_ && nbytes > 0 && is_aligned(map_->data() + entry->data, kFloat64))
      return map_storage(map_, entry->data, nbytes);
    auto storage = make_intrusive<StorageImpl>(static_cast<size_t>(nbytes), &cpu_allocator(), true);
    zip_.read_into(*entry, storage->data());
    if (swapped_) swap_bytes(storage->data(), static_cast<size_t>(nbytes), dtype);
    const int64_t wrong = dtype == kBool ? find_wrong_bool(storage->data(), static_cast<size_t>(nbytes)) : -1;
    if (wrong >= 0) fail(*entry, "0 or 1 for a bool", str_cat({"another byte at ", wrong}));
    return storage;
  }

  const std::string& path_;
  ZipReader zip_;
  const ZipEntry& program_;
  std::string folder_;
  bool swapped_ = false;
  std::shared_ptr<const MappedFile> map_;  // shared with every storage over it
};

}  // namespace

void save_pt(const std::string& path, const Value& value) {
  const Pickle content = pickle(value, path);
  ZipWriter zip(path);
  const auto name = [](std::string_view member) { return str_cat({kFolder, "/", member}); };
  zip.add(name("data.pkl"), content.bytes, kAlignment);
  zip.add(name("byteorder"), "little", kAlignment);
  for (size_t i = 0; i < content.storages.size(); ++i) {
    const Pickle::Part& part = content.storages[i];
    zip.begin(name(str_cat({"data/", i})), static_cast<int64_t>(part.nbytes), false, kAlignment);
    zip.write(part.storage->data(), part.nbytes);
    zip.end();
  }
  zip.add(name("version"), "3\n", kAlignment);
  zip.commit();
}

Value load_pt(const std::string& path, const PtOptions& options) { return Archive(path, options).read(); }

}  // namespace tercel::io
