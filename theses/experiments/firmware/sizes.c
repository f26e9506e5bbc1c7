/* sizes: the sizes of the runtime's structures on the device, as words that the bench reads. */
#include "weft_mcu/actors.h"
#include "weft_mcu/lta.h"
const volatile uint32_t sizes[] = {sizeof(weft_event), sizeof(weft_actor),    sizeof(weft_queue),
                                   sizeof(weft_heap),  sizeof(weft_periodic), sizeof(weft_deadline),
                                   sizeof(weft_far),   sizeof(event_queue_t)};
int main(void) { return (int)sizes[0]; }
