# cmake -DLD= -DNM= -DOBJCOPY= -DISA=cpu_avx2 -DOUTPUT=x.o -P IsolateIsa.cmake -- a.o b.o ...
# Joins the objects into OUTPUT and makes every symbol local but the strong ones of namespace tercel::<ISA>.

cmake_minimum_required(VERSION 3.23)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code ERROR_VARIABLE error)
  if(NOT code EQUAL 0)
    file(REMOVE ${OUTPUT})
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${error}")
  endif()
endfunction()

set(objects "")
set(after_dashes FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(after_dashes)
    list(APPEND objects "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(after_dashes TRUE)
  endif()
endforeach()

get_filename_component(folder ${OUTPUT} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
set(joined ${OUTPUT}.joined)
run(${LD} -r --force-group-allocation -o ${joined} ${objects})

execute_process(COMMAND ${NM} --extern-only --defined-only --format=posix ${joined}
  OUTPUT_VARIABLE symbols RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${NM} cannot read ${joined}")
endif()
# Mangled: _ZN 6tercel <length><isa> ..., K for const member functions.
string(LENGTH ${ISA} length)
string(REGEX MATCHALL "_ZNK?6tercel${length}${ISA}[^ \n]* [BDRT] " kept "${symbols}")
if(NOT kept)
  message(FATAL_ERROR "${OUTPUT}: no strong symbol in namespace tercel::${ISA}; kernels are plain functions there "
                      "(an explicit instantiation of a template is weak)")
endif()
list(TRANSFORM kept REPLACE " [BDRT] $" "")
list(JOIN kept "\n" kept)
file(WRITE ${OUTPUT}.symbols "${kept}\n")
run(${OBJCOPY} --keep-global-symbols=${OUTPUT}.symbols ${joined} ${OUTPUT})
file(REMOVE ${joined})
