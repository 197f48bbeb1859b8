# A build that can be carried away: bin/cudabk finds its libraries in ../lib, in the build folder as in an installed
# one. Only libraries that a bare system lacks are copied; CUDA libraries are opened at first use, where there are any.
set(cudabk_lib_dir ${PROJECT_BINARY_DIR}/lib)
file(MAKE_DIRECTORY ${cudabk_lib_dir})
set_target_properties(cudabk PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH "$ORIGIN/../lib")

add_custom_target(carried_libraries)
add_dependencies(cudabk carried_libraries)
foreach(library fmt::fmt benchmark::benchmark)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    add_custom_command(TARGET carried_libraries POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -E copy_if_different
              $<TARGET_FILE:${library}> ${cudabk_lib_dir}/$<TARGET_SONAME_FILE_NAME:${library}>)
  endif()
endforeach()

install(TARGETS cudabk RUNTIME DESTINATION bin)
install(DIRECTORY ${cudabk_lib_dir}/ DESTINATION lib FILES_MATCHING PATTERN "*.so*")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION share/doc/cudabk)

# Which toolkit this build was made with, for scripts.
if(CUDABK_HAVE_CUDA)
  file(WRITE ${PROJECT_BINARY_DIR}/cuda_toolkit.txt "${CUDAToolkit_VERSION}\n")
else()
  file(WRITE ${PROJECT_BINARY_DIR}/cuda_toolkit.txt "none\n")
endif()
