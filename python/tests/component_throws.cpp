// A component that fails some calls deep, for tests of error messages and of debuggers.
#include <stdexcept>
#include <weft/component.hpp>

using namespace weft::native;

namespace {

double checked(double x) {
  if (x < 0) throw std::domain_error("a negative sample");
  return x;
}
double halve(double x) {
  const double half = checked(x) / 2;
  return half;
}
void halves(Reader<double> samples, Writer<double> out) {
  for (double x : samples) {
    const double half = halve(x);
    out.write(half);
  }
}
void handles(Reader<double>& samples, Writer<double>& out) {  // ends may also be taken by reference
  for (double x : samples) try {
      out.write(checked(x));
    } catch (const std::domain_error&) {  // the exception is caught, and the process goes on
    }
  throw 7;
}
void library(std::size_t n) { std::string(3, 'x').at(n); }

}  // namespace

WEFT_COMPONENT(throws, "Fails some calls deep.") {
  component.process<&halves>("halves").argument("samples").argument("out");
  component.process<&handles>("handles").argument("samples").argument("out");
  component.process<&library>("library").argument("n");
}
