#include "tercel/data/arrow_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "tercel/data/arrow_module_impl.h"
#include "tercel/data/arrow_owned_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/module_paths.h"
#include "tercel/util/process_mutex.h"

// Of the Arrow that the module is built for; 0 and empty where it is not built.
#ifndef TERCEL_ARROW_MAJOR
#define TERCEL_ARROW_MAJOR 0
#define TERCEL_ARROW_SO_VERSION ""
#endif

namespace tercel::data {

namespace {

constexpr const char* kModule = "libtercel_arrow.so";
constexpr int kMajor = TERCEL_ARROW_MAJOR;
constexpr const char* kSoVersion = TERCEL_ARROW_SO_VERSION;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct State {
  std::string folder;
  const ArrowApi* api = nullptr;
};

State& state() {
  static State state;
  return state;
}

/** Arrow and Parquet of a folder, so that the module finds them loaded; false if they are not there. */
bool load_arrow(const std::string& folder) {
  if (folder.empty()) return false;
  for (const char* name : {"libarrow.so.", "libparquet.so."})
    if (!::dlopen(join_path(folder, std::string(name) + kSoVersion).c_str(), RTLD_NOW | RTLD_LOCAL)) return false;
  return true;
}

/** Files of Arrow in a folder, of whatever version. */
std::string found_in(const std::string& folder) {
  std::string found;
  if (folder.empty() || !is_directory(folder)) return found;
  for (const std::string& name : list_dir(folder))
    if (name.starts_with("libarrow.so.")) found += (found.empty() ? "" : ", ") + name;
  return found;
}

[[noreturn]] void fail_missing(std::string_view owner, std::string_view loader, const std::string& folder) {
  TERCEL_CHECK(kMajor != 0, RuntimeError, owner,
               ": expected the module libtercel_arrow.so, which reads and writes Parquet, found that this Tercel was "
               "built without it; build it where Arrow is (pip install pyarrow, then cmake -DTERCEL_ARROW=ON)");
  const std::string others = found_in(folder);
  const bool other_version = !others.empty() && others.find(kSoVersion) == std::string::npos;
  const std::string found = other_version ? str_cat({printable(others), " in ", printable(folder)})
                                          : str_cat({"that the loader says: ", printable(loader)});
  constexpr std::string_view folder_advice =
      "and unless the program is Python set TERCEL_ARROW_LIBRARIES to the folder that "
      "python3 -c 'import pyarrow; print(pyarrow.get_library_dirs()[0])' prints";
  throw_error<RuntimeError>({owner, ": expected Arrow ", kMajor, " (libarrow.so.", kSoVersion,
                             "), which Parquet needs, found ", found, "; pip install 'pyarrow==", kMajor, ".*', ",
                             folder_advice});
}

const ArrowApi* load(std::string_view owner, const std::string& known_folder) {
  const std::string named = environment("TERCEL_ARROW_LIBRARIES");
  const std::string& folder = named.empty() ? known_folder : named;
  if (kMajor == 0) fail_missing(owner, "", folder);
  const bool loaded = load_arrow(folder);
  // A folder that the user names is not passed over in silence.
  if (!loaded && !named.empty()) fail_missing(owner, ::dlerror(), folder);
  void* module = nullptr;
  std::string refused;
  for (const std::string& path : module_paths(kModule, "TERCEL_ARROW_MODULE")) {
    module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module) break;
    if (refused.empty()) refused = ::dlerror();
  }
  // A module that the user names, and that is not there or is none, has nothing to do with Arrow.
  const std::string chosen = environment("TERCEL_ARROW_MODULE");
  const bool lacks_arrow =
      refused.find("libarrow") != std::string::npos || refused.find("libparquet") != std::string::npos;
  TERCEL_CHECK(module || chosen.empty() || lacks_arrow, RuntimeError, owner,
               ": TERCEL_ARROW_MODULE: expected the path of libtercel_arrow.so, found that the loader says: ",
               printable(refused));
  if (!module) fail_missing(owner, refused, folder);
  const auto entry = reinterpret_cast<ArrowEntry>(::dlsym(module, kArrowEntry));
  const ArrowApi* api = entry ? entry() : nullptr;
  TERCEL_CHECK(api && api->abi_version == kArrowAbiVersion, RuntimeError, owner, ": expected ", kModule,
               " of this version of Tercel, found one of another; install both together");
  TERCEL_CHECK(api->arrow_major == kMajor, RuntimeError, owner, ": expected Arrow ", kMajor,
               ", for which Tercel was built, found Arrow ", api->arrow_version);
  api->set_memory_limit(arrow_memory_limit());
  return api;
}

}  // namespace

void set_arrow_folder(const std::string& folder) {
  const std::lock_guard lock(process_mutex(ProcessMutex::ArrowModule));
  state().folder = folder;
}

std::string arrow_version() { return arrow_api("arrow").arrow_version; }

bool has_arrow_module() { return kMajor != 0; }

const ArrowApi& arrow_api(std::string_view owner) {
  State& shared = state();
  const std::lock_guard lock(process_mutex(ProcessMutex::ArrowModule));
  if (!shared.api) shared.api = load(owner, shared.folder);
  return *shared.api;
}

int64_t arrow_memory_limit() {
  const std::string limit = environment("TERCEL_ARROW_MEMORY");
  if (limit.empty()) return int64_t{4} << 30;
  char* end = nullptr;
  const long long bytes = std::strtoll(limit.c_str(), &end, 10);
  TERCEL_CHECK(*end == '\0' && bytes > 0, ConfigError,
               "TERCEL_ARROW_MEMORY: expected a number of bytes, at least 1, found '", printable(limit), "'");
  return bytes;
}

ArrowSourceFile::ArrowSourceFile(const RandomAccessFile& file) : file_(file), input_{this, file.size(), &read_at} {}

int64_t ArrowSourceFile::read_at(void* context, void* out, int64_t bytes, int64_t offset) {
  auto& self = *static_cast<ArrowSourceFile*>(context);
  try {
    return static_cast<int64_t>(self.file_.read_at(out, static_cast<size_t>(bytes), offset));
  } catch (...) {
    self.thrown_ = std::current_exception();
    return -1;
  }
}

void check_arrow(ArrowCode code, const ArrowFailure& failure, std::string_view owner) {
  switch (code) {
    case ArrowCode::Ok: return;
    case ArrowCode::Memory: fail_arrow_memory(owner, printable(failure.text));
    case ArrowCode::Io:
    case ArrowCode::Unsupported:
    case ArrowCode::Data: throw_error<DataError>({owner, ": Arrow: ", printable(failure.text)});
  }
  throw_error<InternalError>({owner, ": unknown code ", static_cast<int64_t>(code), " of the Arrow module"});
}

}  // namespace tercel::data
