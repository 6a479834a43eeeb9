# kbgen-config.cmake: what find_package(kbgen) defines.
#
#   kbgen::kbgen           the program
#   kbgen::headers         a library of headers alone, for editors and linters that read kernels: <kb/tl.h>, <kb/host.h>
#   kbgen_TOPOLOGIES       the folder of the machines that come with kbgen
#   kbgen_add_simulator    makes a simulator of a topology
cmake_minimum_required(VERSION 3.20)

get_filename_component(_kbgen_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(kbgen_TOPOLOGIES "${_kbgen_prefix}/share/kbgen/topologies")

if(NOT TARGET kbgen::kbgen)
  add_executable(kbgen::kbgen IMPORTED GLOBAL)
  set_target_properties(kbgen::kbgen PROPERTIES IMPORTED_LOCATION "${_kbgen_prefix}/bin/kbgen")
  add_library(kbgen::headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(kbgen::headers INTERFACE "${_kbgen_prefix}/share/kbgen/rt")
endif()

# kbgen_add_simulator(NAME TOPOLOGY [KERNELS FILE.c ...] [IMPLS FILE.c ...] [SET KEY=VALUE ...] [OPTIONS WORD ...] [OUTPUT PATH])
#
# Adds the target NAME, a part of `all`, which makes a simulator: simulators/NAME in the build folder of the caller, or PATH. It is
# made again when a file that it was made of changes: the topology and its includes, kernels, models and the headers that
# they include, kbgen. Custom commands and tests run it as simulator::NAME, and then depend on it.
function(kbgen_add_simulator name topology)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "OUTPUT" "KERNELS;IMPLS;SET;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kbgen_add_simulator(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT "simulators/${name}")
  endif()
  get_filename_component(output "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  get_filename_component(topology "${topology}" ABSOLUTE)
  set(files "${topology}")
  set(words "")
  foreach(kind IN ITEMS KERNELS IMPLS)
    foreach(file IN LISTS arg_${kind})
      get_filename_component(file "${file}" ABSOLUTE)
      list(APPEND files "${file}")
      if(kind STREQUAL "KERNELS")
        list(APPEND words --kernel "${file}")
      else()
        list(APPEND words --impl "${file}")
      endif()
    endforeach()
  endforeach()
  foreach(assignment IN LISTS arg_SET)
    list(APPEND words --set "${assignment}")
  endforeach()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND kbgen::kbgen "${topology}" --depfile --output "${output}" ${words} ${arg_OPTIONS}
    DEPENDS ${files}
    DEPFILE "${output}.d"
    COMMENT "Making the simulator ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${output}")
  add_executable(simulator::${name} IMPORTED GLOBAL)
  set_target_properties(simulator::${name} PROPERTIES IMPORTED_LOCATION "${output}")
  add_dependencies(simulator::${name} ${name})
endfunction()
