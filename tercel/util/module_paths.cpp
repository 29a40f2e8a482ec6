#include "tercel/util/module_paths.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

#include "tercel/util/file.h"

namespace tercel {

namespace {

/** The folder of the library or program that has this code; empty if it is not known. */
std::string own_folder() {
  Dl_info here{};
  link_map* object = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&module_paths), &here, reinterpret_cast<void**>(&object),
                RTLD_DL_LINKMAP) == 0 ||
      here.dli_fname == nullptr)
    return {};
  // Of the program itself the name is the word that started it, which may have been looked up in PATH.
  std::error_code none;
  const bool is_program = object != nullptr && object->l_name != nullptr && *object->l_name == '\0';
  const std::string program = is_program ? std::filesystem::read_symlink("/proc/self/exe", none).string() : "";
  return parent_path(program.empty() ? here.dli_fname : program);
}

}  // namespace

std::vector<std::string> module_paths(const std::string& file, const char* variable) {
  if (const char* const named = std::getenv(variable); named && *named != '\0') return {named};
  std::vector<std::string> paths;
  if (const std::string folder = own_folder(); !folder.empty())
    for (const char* beside : {"", "lib", "../lib", "../lib64"})
      paths.push_back(join_path(join_path(folder, beside), file));
  std::erase_if(paths, [](const std::string& path) { return !exists(path); });
  paths.push_back(file);
  return paths;
}

}  // namespace tercel
