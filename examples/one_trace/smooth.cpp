// The process in C++: the mean of the last n samples, for each.
#include <deque>
#include <weft/component.hpp>

using namespace weft::native;

void smooth(Reader<double> samples, Writer<double> means, std::size_t n) {
  std::deque<double> last;
  for (double x : samples) {
    last.push_back(x);
    if (last.size() > n) last.pop_front();
    double sum = 0;
    for (double y : last) sum += y;
    means.write(sum / static_cast<double>(last.size()));
  }
}

WEFT_COMPONENT(smooth, "A filter for streams of numbers.") {
  component.process<&smooth>("smooth", "The mean of the last n samples, for each.")
      .argument("samples")
      .argument("means")
      .argument("n", 2);
}
