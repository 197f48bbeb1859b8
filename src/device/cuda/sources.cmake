# For src/device/CMakeLists.txt. The kernel compiler needs no toolkit to be built (NVRTC is opened at first use); the
# device needs cudart, and nothing else of the toolkit is linked. A target with the property CUDABK_SHARED_CUDART takes
# the shared one: the static one's thread-local memory does not fit into a process that loads the target at run time.
set(CUDABK_KERNEL_COMPILER_SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/code_hash.cpp
    ${CMAKE_CURRENT_LIST_DIR}/compile.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cubin.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cubin_cache.cpp
    ${CMAKE_CURRENT_LIST_DIR}/dynamic_library.cpp
    ${CMAKE_CURRENT_LIST_DIR}/elf_file.cpp
    ${CMAKE_CURRENT_LIST_DIR}/kernel_program.cpp
    ${CMAKE_CURRENT_LIST_DIR}/nvrtc.cpp)
set(CUDABK_KERNEL_COMPILER_LIBRARIES cudabk_kernel_text Threads::Threads ${CMAKE_DL_LIBS})

set(CUDABK_CUDA_DEVICE_SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cublas.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cublas_lt.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_device.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_error.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_graph.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_info.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_kernel.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_stream.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_work_graph.cpp)
set(CUDABK_CUDA_DEVICE_LIBRARIES
    $<IF:$<BOOL:$<TARGET_PROPERTY:CUDABK_SHARED_CUDART>>,CUDA::cudart,CUDA::cudart_static>)
