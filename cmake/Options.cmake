# Flags that every target gets.
add_library(cudabk_options INTERFACE)
target_compile_options(cudabk_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       -Wno-unknown-pragmas)  # "#pragma unroll" of kernels concerns the device compiler
if(CUDABK_WERROR)
  # g++ 12 takes both of these for errors of the standard library's strings and of fully assigned arrays.
  target_compile_options(cudabk_options INTERFACE -Werror -Wno-error=restrict -Wno-error=maybe-uninitialized)
endif()
if(CUDABK_SANITIZE)
  target_compile_options(cudabk_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer)
  target_link_options(cudabk_options INTERFACE -fsanitize=address,undefined)
endif()

find_program(CUDABK_CCACHE ccache)
if(CUDABK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CUDABK_CCACHE})
endif()

# A copied or installed build finds its libraries beside itself.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
