// Rule 18.10: TLS over weft::io. with_library.py compiles this file and runs it: first the test
// cases, and then, with arguments, one side of connections to Python's ssl (tls_peers.py).
//
//   tls keys FOLDER                      makes keys and certificates in FOLDER
//   tls serve CHAIN KEY [AUTHORITIES]    prints its port, and sends back what each client sends
//   tls fetch PORT AUTHORITIES NAME N    sends N bytes, and prints whether the same bytes come back
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <openssl/pem.h>

#include <weft/tls.hpp>
#include <weft/weft.hpp>

using namespace std::chrono_literals;
using weft::Process;
namespace io = weft::io;
namespace tls = weft::tls;

namespace {

// --- keys ----------------------------------------------------------------------------------------

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Key new_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

void extend(X509* c, X509* by, int what, const char* value) {
  X509V3_CTX x{};
  X509V3_set_ctx(&x, by, c, nullptr, nullptr, 0);
  X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, &x, what, value);
  X509_add_ext(c, e, -1);
  X509_EXTENSION_free(e);
}

// Makes a certificate for `name`. The authority `by` signs it with the key `signs`; without `by`
// the certificate is that of an authority. The certificate expires in a day; if `old`, it expired a
// day ago.
Certificate certify(const char* name, EVP_PKEY* key, X509* by, EVP_PKEY* signs, bool old = false) {
  constexpr long kDay = 86'400;
  static long serial = 1;
  Certificate c(X509_new(), &X509_free);
  X509_set_version(c.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(c.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(c.get()), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(c.get()), old ? -kDay : kDay);
  X509_set_pubkey(c.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(c.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509* const from = by ? by : c.get();
  X509_set_issuer_name(c.get(), X509_get_subject_name(from));
  extend(c.get(), from, NID_subject_key_identifier, "hash");
  extend(c.get(), from, NID_basic_constraints, by ? "critical,CA:FALSE" : "critical,CA:TRUE");
  if (by)
    extend(c.get(), from, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  else
    extend(c.get(), from, NID_key_usage, "critical,keyCertSign");
  X509_sign(c.get(), signs, EVP_sha256());
  return c;
}

template <class F>
void write_pem(const std::string& path, F f) {
  BIO* const b = BIO_new_file(path.c_str(), "w");
  if (!b || f(b) != 1) throw std::runtime_error("tls: cannot write " + path);
  BIO_free(b);
}

// Writes the certificates of two authorities, a key, and two certificates for this key, which the
// first authority has signed: one is valid, the other has expired.
void make_keys(const std::string& folder) {
  const Key root = new_key(), other_root = new_key(), key = new_key();
  const Certificate ca = certify("our authority", root.get(), nullptr, root.get());
  const Certificate other = certify("another one", other_root.get(), nullptr, other_root.get());
  const Certificate chain = certify("localhost", key.get(), ca.get(), root.get());
  const Certificate old = certify("localhost", key.get(), ca.get(), root.get(), true);
  const auto keep = [&](const char* file, const Certificate& c) {
    write_pem(folder + file, [&](BIO* b) { return PEM_write_bio_X509(b, c.get()); });
  };
  keep("/ca.pem", ca);
  keep("/other.pem", other);
  keep("/chain.pem", chain);
  keep("/old.pem", old);
  write_pem(folder + "/key.pem", [&](BIO* b) {
    return PEM_write_bio_PrivateKey(b, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string in_folder(const char* file) {
  static const struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name = (std::filesystem::temp_directory_path() / "weft-tls-XXXXXX").string();
      if (!mkdtemp(name.data())) throw std::runtime_error("tls: no folder for the keys");
      path = name;
      make_keys(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
  } folder;
  return folder.path / file;
}

tls::Context ours() { return tls::Context::server(in_folder("chain.pem"), in_folder("key.pem")); }
tls::Context theirs() { return tls::Context::client(in_folder("ca.pem")); }

std::string bytes(std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::string s(n, ' ');
  for (char& c : s) c = static_cast<char>(random());
  return s;
}

// Runs both sides of one connection.
template <class Client, class Server>
void with_both(Client client, Server server, tls::Context to = theirs(), tls::Context from = ours(),
               std::string name = "localhost") {
  auto [a, b] = io::Stream::pair();
  const auto one = [](io::Stream s, tls::Context c, std::string n, Client& f) -> Process {
    co_await f(co_await tls::connect(std::move(s), c, n));
  };
  const auto other = [](io::Stream s, tls::Context c, Server& f) -> Process {
    co_await f(co_await tls::accept(std::move(s), c));
  };
  weft::run(one(std::move(a), to, name, client), other(std::move(b), from, server));
}

Process echo(tls::Stream s) {
  std::vector<char> b(5000);
  while (const std::size_t n = co_await s.read_some(b)) co_await s.write_all({b.data(), n});
  co_await s.shutdown_write();
}

Process sends(tls::Stream s, const std::string& all) {
  co_await s.write_all(all);
  co_await s.shutdown_write();
}
Process receives(tls::Stream s, std::string& into) {
  std::vector<char> b(7000);
  while (const std::size_t n = co_await s.read_some(b)) into.append(b.data(), n);
}

TEST_CASE("rule 18.10: what is written comes back, and TLS's own end is the end") {
  for (const std::size_t n : {0u, 1u, 16384u, 16385u, 3'000'000u}) {
    const std::string all = bytes(n);
    std::string back;
    with_both(
        [&](tls::Stream s) -> Process { co_await weft::par(sends(s, all), receives(s, back)); },
        echo);
    CHECK(back == all);
  }
}

TEST_CASE("rule 18.10: one thread reads while another writes") {
  auto [a, b] = io::Stream::pair();
  const std::string all = bytes(500'000);
  std::string back;
  weft::run(weft::thread([a = a] {
              tls::Stream s = tls::accept(a, ours())();
              std::vector<char> v(3000);
              while (const std::size_t n = s.read_some(v)()) s.write_all({v.data(), n})();
              s.shutdown_write()();
            }),
            weft::thread([&, b = b] {
              tls::Stream s = tls::connect(b, theirs(), "localhost")();
              weft::run(weft::thread([&] {
                          s.write_all(all)();
                          s.shutdown_write()();
                        }),
                        weft::thread([&] {
                          std::vector<char> v(3000);
                          while (const std::size_t n = s.read_some(v)()) back.append(v.data(), n);
                        }));
            }));
  CHECK(back == all);
}

TEST_CASE("rules 18.1, 18.10: limits take no byte, wherever they strike") {
  const std::string all = bytes(400'000);
  std::string back;
  with_both(
      [&](tls::Stream s) -> Process {
        const auto impatient = [](tls::Stream t, const std::string& text) -> Process {
          std::size_t done = 0;
          for (int k = 0; done < text.size(); ++k) {
            std::size_t sent = 0;
            try {
              weft::Timeout limit(std::chrono::microseconds(k % 40));
              co_await t.write_all(std::string_view(text).substr(done), &sent);
            } catch (const weft::TimedOut&) {
            }
            done += sent;
          }
          co_await t.shutdown_write();
        };
        co_await weft::par(impatient(s, all), receives(s, back));
      },
      [](tls::Stream s) -> Process {
        std::vector<char> b(5000);
        for (int k = 0;; ++k) {
          std::size_t n = 0;
          try {
            weft::Timeout limit(std::chrono::microseconds(k % 40));
            n = co_await s.read_some(b);
          } catch (const weft::TimedOut&) {
            continue;
          }
          if (n == 0) break;
          co_await s.write_all({b.data(), n});
        }
        co_await s.shutdown_write();
      });
  CHECK(back == all);
}

TEST_CASE("rule 18.10: readable() knows of records that OpenSSL has taken from the socket") {
  with_both(
      [](tls::Stream s) -> Process {
        for (int k = 0; k < 300; ++k) co_await s.write_all("x");  // one read takes many records
        char c = 0;
        CHECK(co_await s.read_some({&c, 1}) == 1);
      },
      [](tls::Stream s) -> Process {
        weft::Channel<int> never;
        const auto keep = never.writer();
        const auto other = never.reader();
        char c = 0;
        for (int k = 0; k < 300;) {
          const auto [which, value] = co_await weft::select(io::readable(s), weft::in(other));
          CHECK(which == 0);
          if (s.try_read_some({&c, 1})) ++k;
        }
        CHECK(!s.try_read_some({&c, 1}));
        co_await s.write_all("y");
      });
}

template <class F>
std::string failure_of(F f) {
  try {
    f();
  } catch (const tls::Error& e) {
    return e.what();
  } catch (const std::system_error& e) {
    return e.what();
  }
  return "nothing failed";
}

void contains(const std::string& text, const char* part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

const auto nothing = [](tls::Stream) -> Process { co_return; };

TEST_CASE("rule 18.10: who does not prove the name is refused, in words") {
  const auto refused = [](tls::Context to, const char* name) {
    return failure_of([&] { with_both(nothing, nothing, to, ours(), name); });
  };
  contains(refused(theirs(), "example.org"), "certificate verify failed (hostname mismatch)");
  contains(refused(theirs(), "127.0.0.2"), "certificate verify failed (IP address mismatch)");
  contains(refused(tls::Context::client(in_folder("other.pem")), "localhost"),
           "certificate verify failed (");
  contains(failure_of([] {
             with_both(nothing, nothing, theirs(),
                       tls::Context::server(in_folder("old.pem"), in_folder("key.pem")));
           }),
           "certificate has expired");
  with_both(nothing, nothing, theirs(), ours(), "127.0.0.1");  // the certificate names this address
}

TEST_CASE("rule 18.10: a server may ask for the client's certificate") {
  auto strict = ours();
  strict.require(in_folder("ca.pem"));
  contains(failure_of([&] { with_both(nothing, nothing, theirs(), strict); }),
           "peer did not return a certificate");
  auto known = theirs();
  known.identify(in_folder("chain.pem"), in_folder("key.pem"));
  for (int again = 0; again < 2; ++again) with_both(nothing, nothing, known, strict);
}

TEST_CASE("rule 18.10: both sides agree on a protocol, or neither goes on") {
  auto server = ours(), client = theirs(), other = theirs();
  server.protocols({"h2", "http/1.1"});
  client.protocols({"http/1.1", "h2"});
  other.protocols({"smtp"});
  with_both(
      [](tls::Stream s) -> Process {
        CHECK(s.protocol() == "h2");
        co_return;
      },
      nothing, client, server);
  contains(failure_of([&] { with_both(nothing, nothing, other, server); }), "protocol");
  CHECK_THROWS_AS(client.protocols({""}), weft::BadUse);
}

TEST_CASE("rule 18.10: an end without TLS's own end is an error, and stays one") {
  with_both(
      [](tls::Stream s) -> Process {
        co_await s.write_all("half");
        s.below().close();
      },
      [](tls::Stream s) -> Process {
        char b[10];
        CHECK(co_await s.read_some(b) == 4);
        for (int k = 0; k < 2; ++k)
          CHECK_THROWS_WITH_AS(co_await s.read_some(b), doctest::Contains("without TLS's own end"),
                               tls::Error);
      });
}

TEST_CASE("rule 18.10: a peer that does not speak TLS, or sends garbage later") {
  auto [a, b] = io::Stream::pair();
  contains(failure_of([&a = a, &b = b] {
             weft::run(
                 [](io::Stream s) -> Process { co_await s.write_all("GET / HTTP/1.0\r\n\r\n"); }(a),
                 [](io::Stream s) -> Process { co_await tls::accept(s, ours()); }(b));
           }),
           "http request");
  with_both(
      [](tls::Stream s) -> Process { co_await s.below().write_all("this is no record of TLS"); },
      [](tls::Stream s) -> Process {
        char c[10];
        CHECK_THROWS_AS(co_await s.read_some(c), tls::Error);
      });
}

TEST_CASE("rules 18.5, 18.10: closed while somebody waits; used wrongly") {
  with_both(
      [](tls::Stream s) -> Process {
        const auto waits = [](tls::Stream t) -> Process {
          char c[10];
          CHECK_THROWS_AS(co_await t.read_some(c), std::system_error);
          CHECK_THROWS_AS(co_await t.write_all("x"), std::system_error);
        };
        const auto closes = [](tls::Stream t) -> Process {
          co_await weft::yield();
          t.close();
        };
        co_await weft::par(waits(s), closes(s));
      },
      [](tls::Stream s) -> Process {
        char c[10];
        CHECK(co_await s.read_some(c) == 0);
      });
  tls::Stream none;
  CHECK(!none);
  char c[1];
  CHECK_THROWS_AS(none.read_some(c), weft::BadUse);
  CHECK_THROWS_AS(none.write_all("x"), weft::BadUse);
  none.close();
  auto [a, b] = io::Stream::pair();
  CHECK_THROWS_AS(tls::connect(a, theirs(), ""), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(tls::connect(io::Stream(), theirs(), "x")), weft::BadUse);
  CHECK_THROWS_AS(static_cast<void>(tls::accept(io::Stream(), ours())), weft::BadUse);
  auto first = theirs();
  const tls::Context second = std::move(first);
  with_both(nothing, nothing, first);  // NOLINT: a Context is only copied
  with_both(nothing, nothing, second);
  contains(failure_of([] { tls::Context::server(in_folder("nowhere"), in_folder("key.pem")); }),
           "nowhere");
  contains(failure_of([] { tls::Context::server(in_folder("ca.pem"), in_folder("key.pem")); }),
           "key.pem");
}

TEST_CASE("names are looked up, and the first address that answers is taken") {
  io::Listener door(io::Address("127.0.0.1:0"));
  const std::string port = std::to_string(door.address().port());
  weft::run([](io::Listener d, std::string p) -> Process {
    std::vector<io::Address> to = co_await io::look_up("localhost", p);
    CHECK(!to.empty());
    to.insert(to.begin(), io::Address("127.0.0.1:1"));  // no program listens at this address
    to.push_back(io::Address("127.0.0.1:" + p));
    const io::Stream s = co_await io::connect(to);
    CHECK(s.peer().port() == d.address().port());
  }(door, port));
  CHECK_THROWS_WITH_AS(io::look_up("name.invalid", "80")(), doctest::Contains("name.invalid"),
                       std::system_error);
  CHECK_THROWS_AS(io::connect(std::vector<io::Address>()), weft::BadUse);
}

// --- one side of a connection, whose other side is another library -------------------------------

Process serve(io::Listener door, tls::Context c) {
  weft::Group connections;
  for (;;) {
    connections.start([](io::Stream s, const tls::Context& with) -> Process {
      try {
        co_await echo(co_await tls::accept(std::move(s), with));
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
    }(co_await door.accept(), c));
  }
}

Process fetch(std::string port, tls::Context c, std::string name, std::size_t n) {
  tls::Stream s =
      co_await tls::connect(co_await io::connect(co_await io::look_up("127.0.0.1", port)), c, name);
  const std::string all = bytes(n);
  std::string back;
  co_await weft::par(sends(s, all), receives(s, back));
  std::printf("%zu %s\n", back.size(), back == all ? "as sent" : "changed");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  try {
    if (what == "keys" && argc == 3) {
      make_keys(argv[2]);
      return 0;
    }
    if (what == "serve" && argc >= 4) {
      io::Listener door(io::Address("127.0.0.1:0"));
      auto c = tls::Context::server(argv[2], argv[3]);
      if (argc > 4) c.require(argv[4]);
      std::printf("%d\n", door.address().port());
      std::fflush(stdout);
      weft::run(serve(door, c));
      return 0;
    }
    if (what == "fetch" && argc == 6) {
      weft::run(fetch(argv[2], tls::Context::client(argv[3]), argv[4], std::stoul(argv[5])));
      return 0;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return doctest::Context(argc, argv).run();
}
