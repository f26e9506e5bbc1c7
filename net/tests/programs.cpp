// The C++ programs of the tests: net_programs NAME[@RELAY] SERVER KEYS ARGS…. RELAY is automatic,
// only or never. Each program reports in lines of JSON, as programs.py does.
#include <weft/net.hpp>

#include <complex>
#include <cstdio>
#include <functional>
#include <iostream>

namespace {
using weft::net::Any;
using Args = std::vector<std::string>;

void say(const Any& what) { std::cout << what.dump() << std::endl; }
void wait_for_go() {
  std::string line;
  std::getline(std::cin, line);
}
std::string kind_of(const weft::ChannelEnd& e) {
  if (dynamic_cast<const weft::Retired*>(&e)) return "Retired";
  return dynamic_cast<const weft::Poisoned*>(&e) ? "Poisoned" : "PeerDied";
}

// Writes 0, 1, … N-1 to a channel of another program.
void names_writer(weft::net::Network& network, const Args& a) {
  auto out = network.at(a[0]).writer<weft::Typed<long>>();
  for (long i = 0; i < std::stol(a[1]); ++i) out(i);
  out.retire();
  say("written");
}

// Reads until the channel ends. Reports the values, and how the channel ended.
void names_reader(weft::net::Network& network, const Args& a) {
  auto in = network.at(a[0]).reader<weft::Typed<Any>>();
  say("has it");
  Any got = Any::array();
  try {
    for (;;) got.push_back(*in());
  } catch (const weft::ChannelEnd& e) {
    say({got, kind_of(e)});
  }
}

// Offers both sides, and keeps an end of each until the test lets the program continue.
void is_home(weft::net::Network& network, const Args& a) {
  const weft::Channel<weft::Typed<long>> c(weft::named("c"));
  auto reader = c.reader();
  auto writer = c.writer();
  for (const std::string& name : a) network.offer(name, c, {.readers = true, .writers = true});
  say("offered");
  wait_for_go();
  reader.retire();
  writer.retire();
}

// Plays the home of a channel, and reads all values. Reports when the first value has arrived, and
// in the end how many values arrived and how the channel ended.
void reads_all(weft::net::Network& network, const Args& a) {
  const weft::Channel<weft::Typed<long>> c(
      weft::buffer(static_cast<std::uint32_t>(std::stoul(a[1]))).called("c"));
  auto in = c.reader();
  network.offer(a[0], c, {.writers = true});
  say("offered");
  long n = 0;
  try {
    for (;; ++n) {
      if (in() != n) return say("out of order");
      if (n == 0) say("the first");
    }
  } catch (const weft::ChannelEnd& e) {
    say({n, kind_of(e)});
  }
}

// Plays the home of a channel, and writes 0, 1, … to it until there is no reader. Reports how many
// values it has written, and how the channel ended.
void writes_for_ever(weft::net::Network& network, const Args& a) {
  const weft::Channel<weft::Typed<long>> c(weft::named("c"));
  auto out = c.writer();
  network.offer(a[0], c, {.readers = true});
  say("offered");
  long n = 0;
  try {
    for (;; ++n) out(n);
  } catch (const weft::ChannelEnd& e) {
    say({n, kind_of(e)});
  }
}

// Sends back every value that it reads, until the channel ends.
void echoes(weft::net::Network& network, const Args& a) {
  auto values = network.at(a[0] + "/values").reader<weft::Typed<Any>>();
  auto back = network.at(a[0] + "/back").writer<weft::Typed<Any>>();
  try {
    for (;;) {
      const auto v = values();
      try {
        back(*v);
      } catch (const weft::BadUse& e) {
        back(Any{{"refused", e.what()}});
      }
    }
  } catch (const weft::Retired&) {
    back.retire();
    say("done");
  }
}

// Sends back arrays of one dtype, and reports all other values, until the channel ends.
template <class T>
void echoes_arrays_of(weft::net::Network& network, const std::string& name) {
  using Array = weft::Typed<weft::net::Array<T>>;
  auto values = network.at(name + "/values").reader<Array>();
  auto back = network.at(name + "/back").writer<Array>();
  try {
    for (;;) {
      const auto v = values();
      try {
        back(*v);
      } catch (const weft::BadUse& e) {
        say(e.what());
      }
    }
  } catch (const weft::Retired&) {
    back.retire();
  }
}
template <class... T>
void echoes_arrays_of_each(weft::net::Network& network, const std::string& name) {
  (echoes_arrays_of<T>(network, name + "/" + weft::net::detail::dtype<T>().substr(1)), ...);
}
void echoes_arrays(weft::net::Network& network, const Args& a) {
  echoes_arrays_of_each<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                        std::uint32_t, std::int64_t, std::uint64_t, float, double,
                        std::complex<float>, std::complex<double>>(network, a[0]);
  say("done");
}

// Reads a list of numbers, and then a single number. Writes an array that it makes, and an array
// whose shape does not fit its numbers.
void numbers(weft::net::Network& network, const Args& a) {
  auto list = network.at(a[0] + "/list").reader<weft::Typed<std::vector<double>>>();
  auto one = network.at(a[0] + "/one").reader<weft::Typed<double>>();
  auto made = network.at(a[0] + "/made").writer<weft::Typed<weft::net::Array<float>>>();
  const auto told = [](const auto& v) {
    try {
      say(*v);
    } catch (const weft::BadUse& e) {
      say(e.what());
    }
  };
  try {
    for (;;) told(list());
  } catch (const weft::Retired&) {
  }
  try {
    for (;;) told(one());
  } catch (const weft::Retired&) {
  }
  made(weft::net::Array<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  made(weft::net::Array<float>(std::vector<float>{0.5}));
  made(weft::net::Array<float>());
  made(weft::net::Array<float>({}, {7}));
  try {
    made(weft::net::Array<float>({2, 3}, {1, 2}));
  } catch (const weft::BadUse& e) {
    say(e.what());
  }
}

// Reads integers. Reports values that are not integers, and continues.
void reads_integers(weft::net::Network& network, const Args& a) {
  auto in = network.at(a[0]).reader<weft::Typed<std::int8_t>>();
  try {
    for (;;) {
      const auto v = in();
      try {
        say(*v);
      } catch (const weft::BadUse& e) {
        say(e.what());
      }
    }
  } catch (const weft::Retired&) {
    say("done");
  }
}

// Chooses among two ends of channels with the same home and an end of a channel of this program.
void chooses(weft::net::Network& network, const Args& a) {
  auto left = network.at(a[0] + "/left").reader<weft::Typed<long>>();
  auto right = network.at(a[0] + "/right").reader<weft::Typed<long>>();
  Any got = Any::array();
  for (long i = 0; i < std::stol(a[1]); ++i) {
    weft::wire::FarSelect s;
    s.in(left).in(right);
    const auto at = s();
    got.push_back({at, *s.value<weft::Typed<long>>()});
  }
  say(got);
}

// A process that reads a value from another program and then writes one to another program. Reports
// how the process ended.
weft::Process passes(weft::wire::FarReader<weft::Typed<long>> in,
                     weft::wire::FarWriter<weft::Typed<long>> out) {
  co_await out.write(co_await in.read());
}
weft::Process passes_here(weft::Reader<weft::Typed<long>> in, weft::Writer<weft::Typed<long>> out) {
  co_await out.write(co_await in.read());
}
void say_how_it_ends(weft::Process p) {
  try {
    weft::run(std::move(p));
    say({"well", ""});
  } catch (const weft::Deadlock& e) {
    say({"Deadlock", e.what()});
  } catch (const weft::ChannelEnd& e) {
    say({kind_of(e), e.what()});
  }
}
void passes_on(weft::net::Network& network, const Args& a) {
  auto in = network.at(a[0] + "/there").reader<weft::Typed<long>>();
  auto out = network.at(a[0] + "/back").writer<weft::Typed<long>>();
  say("has them");
  say_how_it_ends(passes(std::move(in), std::move(out)).named("passes"));
}
// Runs `passes` as the home of both channels. Withdraws the names of the channels when the test
// orders it.
void passes_on_at_home(weft::net::Network& network, const Args& a) {
  const weft::Channel<weft::Typed<long>> there(weft::named("there")), back(weft::named("back"));
  auto in = back.reader();
  auto out = there.writer();
  network.offer(a[0] + "/there", there, {.readers = true});
  network.offer(a[0] + "/back", back, {.writers = true});
  say("offered");
  wait_for_go();
  network.withdraw(a[0] + "/there");
  network.withdraw(a[0] + "/back");
  say_how_it_ends(passes_here(std::move(in), std::move(out)).named("passes"));
}

// Writes or reads words of a C++ type that both programs know.
void own_type(weft::net::Network& network, const Args& a) {
  using Row = std::vector<double>;
  if (a[1] == "home") {
    const weft::Channel<Row> c(weft::named("rows"));
    auto in = c.reader();
    network.offer(a[0], c, {.writers = true});
    say("offered");
    double sum = 0;
    for (const double each : in()) sum += each;
    say(sum);
  } else {
    auto out = network.at(a[0]).writer<Row>();
    out(Row(100'000, 0.5));
    out.retire();
    say("written");
  }
}

// Requests an end. Reports "ok", or the error.
void tries(weft::net::Network& network, const Args& a) {
  const double patience = std::stod(a[2]);
  try {
    const auto at = network.at(a[0], std::chrono::duration<double>(patience));
    if (a[1] == "reader") at.reader<weft::Typed<long>>();
    if (a[1] == "writer") at.writer<weft::Typed<long>>();
    if (a[1] == "raw") at.writer<long>();
    say({"ok", ""});
  } catch (const weft::net::Unreachable& e) {
    say({"Unreachable", e.what()});
  } catch (const weft::BadUse& e) {
    say({"BadUse", e.what()});
  } catch (const weft::ChannelEnd& e) {
    say({kind_of(e), e.what()});
  }
}

// Offers a name when the test orders it, and reports how the offer ended. Withdraws the name when
// the test orders it.
void offers(weft::net::Network& network, const Args& a) {
  const weft::Channel<weft::Typed<long>> c(weft::named("c"));
  const auto keep = c.writer();
  try {
    network.offer(a[0], c, {.readers = true});
    say({"ok", ""});
    wait_for_go();
    network.withdraw(a[0]);
    say({"withdrawn", ""});
    wait_for_go();
  } catch (const weft::BadUse& e) {
    say({"BadUse", e.what()});
  }
}

// Requests an end of this program's own channel from the network, and reports the answer.
void comes_to_itself(weft::net::Network& network, const Args& a) {
  const weft::Channel<weft::Typed<long>> c(weft::named("c"));
  network.offer(a[0], c, {.readers = true, .writers = true});
  try {
    auto out = network.at(a[0]).writer<weft::Typed<long>>();
    say("it has an end");
  } catch (const weft::BadUse& e) {
    say(e.what());
  }
}

// Reports whether OpenSSL still works at the end of the program, after all functions that were
// registered later have run.
void says_whether_openssl_is_there() {
  std::atexit([] { say(OPENSSL_init_crypto(0, nullptr) == 1); });
}
void ends_with_openssl(weft::net::Network&, const Args&) {}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}
// Answers questions line by line, without a network. The texts in a question are in hexadecimal.
// `grant GRANT NAME`: whether the grant covers the name. `json TEXT`: whether the text is accepted.
// `certificate FILE`: the grants in it.
void agrees() {
  namespace n = weft::net::detail;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what, first, second;
    words >> what >> first >> second;
    first = from_hex(first), second = from_hex(second);
    if (what == "grant") say(n::grants(first, second));
    if (what == "json") say(!n::parsed(first).is_discarded());
    if (what != "certificate") continue;
    Any found = Any::array();
    BIO* const file = BIO_new_file(first.c_str(), "r");
    X509* const certificate = PEM_read_bio_X509(file, nullptr, nullptr, nullptr);
    for (const std::string& g : n::Member::of(certificate).grants)
      found.push_back(n::hex(reinterpret_cast<const unsigned char*>(g.data()), g.size()));
    X509_free(certificate);
    BIO_free(file);
    say(found);
  }
}

const std::map<std::string, std::function<void(weft::net::Network&, const Args&)>> kPrograms{
    {"names_writer", names_writer},
    {"names_reader", names_reader},
    {"is_home", is_home},
    {"reads_all", reads_all},
    {"writes_for_ever", writes_for_ever},
    {"echoes", echoes},
    {"echoes_arrays", echoes_arrays},
    {"numbers", numbers},
    {"reads_integers", reads_integers},
    {"chooses", chooses},
    {"own_type", own_type},
    {"passes_on", passes_on},
    {"passes_on_alone", passes_on},
    {"passes_on_at_home", passes_on_at_home},
    {"tries", tries},
    {"offers", offers},
    {"comes_to_itself", comes_to_itself},
    {"ends_with_openssl", ends_with_openssl},
};

}  // namespace

int main(int argc, char** argv) {
  using weft::net::Relay;
  const Args a(argv + 1, argv + argc);
  if (a.at(0) == "agrees") return agrees(), 0;
  const std::size_t at = a.at(0).find('@');
  if (a[0].starts_with("ends_with_openssl")) says_whether_openssl_is_there();
  const std::string relay = at == std::string::npos ? "automatic" : a[0].substr(at + 1);
  try {
    auto network = weft::join(a.at(1), {.keys = a.at(2),
                                        .name = "c++",
                                        .relay = relay == "only"    ? Relay::only
                                                 : relay == "never" ? Relay::never
                                                                    : Relay::automatic,
                                        .rounds = a[0].substr(0, at) != "passes_on_alone"});
    kPrograms.at(a[0].substr(0, at))(network, Args(a.begin() + 3, a.end()));
    return 0;
  } catch (const weft::Error& e) {
    say({"error", e.what()});
    return 1;
  }
}
