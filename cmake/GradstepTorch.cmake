# Makes the imported target gradstep_torch from a LibTorch that is already on the machine.
# Looked for in this order: TORCH_DIR (a folder with include/ and lib/), CMAKE_PREFIX_PATH, the active python3's torch, .venv's torch.
set(GRADSTEP_TORCH_ROOT "" CACHE PATH "Folder of LibTorch (with include/ and lib/); empty: look for it")

function(gradstep_find_torch out)
  if(GRADSTEP_TORCH_ROOT)
    set(${out} "${GRADSTEP_TORCH_ROOT}" PARENT_SCOPE)
    return()
  endif()
  foreach(python "${PROJECT_SOURCE_DIR}/.venv/bin/python" python3)
    execute_process(COMMAND ${python} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
    if(rc EQUAL 0 AND EXISTS "${found}/lib/libtorch_cpu.so")
      set(${out} "${found}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

gradstep_find_torch(torch_root)
if(NOT torch_root)
  message(FATAL_ERROR "gradstep: LibTorch not found. Run 'make build', or: python3 -m venv .venv && .venv/bin/pip install torch==2.13.0")
endif()
message(STATUS "gradstep: LibTorch in ${torch_root}")

add_library(gradstep_torch INTERFACE IMPORTED)
target_include_directories(gradstep_torch SYSTEM INTERFACE
  "${torch_root}/include" "${torch_root}/include/torch/csrc/api/include")
target_link_libraries(gradstep_torch INTERFACE
  "${torch_root}/lib/libtorch.so" "${torch_root}/lib/libtorch_cpu.so" "${torch_root}/lib/libc10.so")
target_compile_definitions(gradstep_torch INTERFACE NDEBUG USE_DISTRIBUTED USE_C10D_GLOO)
target_compile_features(gradstep_torch INTERFACE cxx_std_20)
