# cmake -DBUILD= -DSOURCE= -DCXX= -DGENERATOR= -P consumer.cmake
# Installs the build into an empty folder, moves the folder, and builds and runs examples/consumer against it.
cmake_minimum_required(VERSION 3.23)

set(work ${BUILD}/consumer_test)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed)
# Installed files contain no path of the build or installation folder.
file(RENAME ${work}/installed ${work}/moved)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/consumer -B ${work}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${work}/moved -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${work}/build --output-on-failure --no-tests=error)

file(GLOB_RECURSE private ${work}/moved/include/*_impl.h ${work}/moved/include/*_ops.h ${work}/moved/include/*.cpp ${work}/moved/include/*/cpu/*.h)
list(FILTER private EXCLUDE REGEX "/core/tensor_impl\\.h$")  # TensorImpl is public: tensor.h includes it
if(private)
  message(FATAL_ERROR "private files were installed: ${private}")
endif()
