# Installs the libraries, the public headers, the program and the package files for find_package(tercel).

include(CMakePackageConfigHelpers)

set(tercel_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tercel)

# Two export sets: users of the shared library need none of the packages that the static one is linked with.
install(TARGETS tercel EXPORT tercelStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tercelStatic NAMESPACE tercel:: DESTINATION ${tercel_package_dir} FILE tercelStaticTargets.cmake)
if(TARGET tercel_shared)
  install(TARGETS tercel_shared EXPORT tercelShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tercelShared NAMESPACE tercel:: DESTINATION ${tercel_package_dir} FILE tercelSharedTargets.cmake)
endif()
foreach(module IN ITEMS tercel_arrow tercel_mpi)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
if(TARGET tercel_program)
  install(TARGETS tercel_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/tercel/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tercel
  FILES_MATCHING PATTERN "*.h"
  REGEX "_(impl|kernels|ops)\\.h$" EXCLUDE
  REGEX "/tercel/[a-z]+/([a-z]+/)?(cpu|cuda)$" EXCLUDE)
install(DIRECTORY ${TERCEL_GENERATED}/tercel/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tercel FILES_MATCHING PATTERN "*.h")
# Public despite its name: it declares TensorImpl.
install(FILES ${PROJECT_SOURCE_DIR}/tercel/core/tensor_impl.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tercel/core)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tercelConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tercelConfig.cmake INSTALL_DESTINATION ${tercel_package_dir})
# Before 1.0 minor versions may be incompatible.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tercelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/tercelConfig.cmake ${PROJECT_BINARY_DIR}/tercelConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindSLEEF.cmake ${PROJECT_SOURCE_DIR}/cmake/FindxxHash.cmake
  DESTINATION ${tercel_package_dir})
