# The toolchain of programs without an SDK: cmake -DCMAKE_TOOLCHAIN_FILE=weft/mcu/rp2040.cmake …, then
# weft_mcu_program (CMakeLists.txt).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(WEFT_MCU_BARE ON)
