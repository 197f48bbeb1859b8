# One target per folder. Headers of a module are visible only to targets that list it (and to those above them): every
# module gets its own include root, a folder that holds nothing but a link to the module.
function(cudabk_include_root name dir)
  set(root ${PROJECT_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${dir} ${root}/${name} SYMBOLIC)
  set(${name}_INCLUDE_ROOT ${root} PARENT_SCOPE)
endfunction()

# Compiles the sources of a target several at a time, where they share costly templates (JSON, GoogleTest, CLI11): a third of
# the time. Names of their unnamed namespaces must differ then. cudabk_join(TARGET [SOURCES-AT-A-TIME], default all).
function(cudabk_join target)
  set(count 0)
  if(ARGC GREATER 1)
    set(count ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
endfunction()

# cudabk_module(NAME [SOURCES ...] [DEPS targets ...] [PRIVATE_DEPS targets ...])
# SOURCES defaults to every .cpp directly in the folder.
function(cudabk_module name)
  cmake_parse_arguments(M "" "DIR" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT M_DIR)
    set(M_DIR ${PROJECT_SOURCE_DIR}/src/${name})
  endif()
  if(NOT M_SOURCES)
    file(GLOB M_SOURCES CONFIGURE_DEPENDS ${M_DIR}/*.cpp)
  endif()
  cudabk_include_root(${name} ${M_DIR})
  if(NOT M_SOURCES)  # headers only
    add_library(cudabk_${name} INTERFACE)
    target_include_directories(cudabk_${name} INTERFACE ${${name}_INCLUDE_ROOT})
    target_link_libraries(cudabk_${name} INTERFACE ${M_DEPS})
    return()
  endif()
  add_library(cudabk_${name} STATIC ${M_SOURCES})
  target_include_directories(cudabk_${name} PUBLIC ${${name}_INCLUDE_ROOT})
  target_link_libraries(cudabk_${name} PUBLIC ${M_DEPS} PRIVATE cudabk_options ${M_PRIVATE_DEPS})
endfunction()

# cudabk_test(NAME [JOIN] [DEPS targets ...] [TIMEOUT s] [COST s]): tests/NAME/*.cpp as one program and one ctest entry.
# Entries that cost much begin first. JOIN compiles the files together.
function(cudabk_test name)
  cmake_parse_arguments(T "JOIN" "TIMEOUT;COST" "DEPS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  add_executable(test_${name} ${sources})
  if(T_JOIN)
    cudabk_join(test_${name})
  endif()
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE cudabk_options ${T_DEPS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE CUDABK_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} COST "0${T_COST}")
endfunction()
