#include "tercel/util/module_paths.h"

#include <dlfcn.h>

#include <cstdlib>

#include "tercel/util/file.h"

namespace tercel {

std::vector<std::string> module_paths(const std::string& file, const char* variable) {
  if (const char* const named = std::getenv(variable); named && *named != '\0') return {named};
  std::vector<std::string> paths;
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&module_paths), &here) != 0 && here.dli_fname) {
    const std::string folder = parent_path(here.dli_fname);
    for (const char* beside : {"", "lib", "../lib", "../lib64"})
      paths.push_back(join_path(join_path(folder, beside), file));
  }
  std::erase_if(paths, [](const std::string& path) { return !exists(path); });
  paths.push_back(file);
  return paths;
}

}  // namespace tercel
