# kbgen-config.cmake: what find_package(kbgen) defines.
#
#   kbgen::kbgen           the program
#   kbgen::headers         a library of headers alone, for editors and linters that read kernels: <kb/tl.h>, <kb/host.h>
#   kbgen_TOPOLOGIES       the folder of the machines that come with kbgen
#   kbgen_add_simulator    makes a simulator of a topology
#   kbgen_add_library      makes a library of it, with instances (--emit lib)
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
  _kbgen_output(output "${arg_OUTPUT}" "simulators/${name}")
  _kbgen_make(${name} "${topology}" "${output}" "${output}")
  add_executable(simulator::${name} IMPORTED GLOBAL)
  set_target_properties(simulator::${name} PROPERTIES IMPORTED_LOCATION "${output}")
  add_dependencies(simulator::${name} ${name})
endfunction()

# kbgen_add_library(NAME TOPOLOGY [the same])
#
# Adds the target NAME, which makes a library with the interface <kb/sim.h> and the header <NAME.h>: simulators/NAME.lib in the build
# folder of the caller, or PATH. The machine is named NAME. Programs are linked with library::NAME, or with library::NAME_static.
function(kbgen_add_library name topology)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "OUTPUT" "KERNELS;IMPLS;SET;OPTIONS")
  _kbgen_output(output "${arg_OUTPUT}" "simulators/${name}.lib")
  list(APPEND arg_SET system.name=${name})
  list(APPEND arg_OPTIONS --emit lib)
  _kbgen_make(${name} "${topology}" "${output}" "${output}/lib${name}.so" "${output}/lib${name}.a")
  file(MAKE_DIRECTORY "${output}")                      # CMake wants folders of headers to be there
  add_library(library::${name} SHARED IMPORTED GLOBAL)
  add_library(library::${name}_static STATIC IMPORTED GLOBAL)
  set_target_properties(library::${name} PROPERTIES IMPORTED_LOCATION "${output}/lib${name}.so")
  set_target_properties(library::${name}_static PROPERTIES IMPORTED_LOCATION "${output}/lib${name}.a")
  target_link_libraries(library::${name}_static INTERFACE dl pthread)
  foreach(library IN ITEMS library::${name} library::${name}_static)
    target_include_directories(${library} INTERFACE "${output}")
    add_dependencies(${library} ${name})
  endforeach()
endfunction()

function(_kbgen_output variable given standard)
  if(NOT given)
    set(given "${standard}")
  endif()
  get_filename_component(path "${given}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  set(${variable} "${path}" PARENT_SCOPE)
endfunction()

# Adds the target NAME, which makes files by kbgen, with the arguments that the caller has parsed.
function(_kbgen_make name topology output file)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kbgen: ${name} has an unknown argument: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(topology "${topology}" ABSOLUTE)
  set(inputs "${topology}")
  set(words "")
  foreach(one IN LISTS arg_KERNELS)
    get_filename_component(one "${one}" ABSOLUTE)
    list(APPEND inputs "${one}")
    list(APPEND words --kernel "${one}")
  endforeach()
  foreach(one IN LISTS arg_IMPLS)
    get_filename_component(one "${one}" ABSOLUTE)
    list(APPEND inputs "${one}")
    list(APPEND words --impl "${one}")
  endforeach()
  foreach(one IN LISTS arg_SET)
    list(APPEND words --set "${one}")
  endforeach()
  add_custom_command(
    OUTPUT "${file}"
    BYPRODUCTS ${ARGN}
    COMMAND kbgen::kbgen "${topology}" --depfile --output "${output}" ${words} ${arg_OPTIONS}
    DEPENDS ${inputs}
    DEPFILE "${output}.d"
    COMMENT "kbgen makes ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${file}")
endfunction()
