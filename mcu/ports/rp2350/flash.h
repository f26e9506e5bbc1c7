/* flash.h: the flash chip, by the functions of the pico-sdk: ports/rp2040/flash_sdk.c is compiled
 * for both chips. Only the first 2 MB are used. */
#include "../rp2040/flash.h"
