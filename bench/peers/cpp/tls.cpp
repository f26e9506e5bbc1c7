// Raw TLS 1.3 by OpenSSL over a blocking TCP connection on loopback, between two processes, each on
// its own CPU: the layer below the sessions of a network, and the time that encryption alone adds
// to a megabyte.
//
//   tls SAMPLES PER      ns one way of a megabyte, from before the write to after the read of the
//                        last byte, by the system's clock; the reader requests each
//
// This method is the quickest that was found: the reader reads all records that have arrived at
// once, up to kTogether bytes, and the writer collects that many bytes before it sends them.
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdint>
#include <cstring>

#include "../../cpp/pin.hpp"
#include "../../cpp/tcp.hpp"

namespace {
constexpr std::size_t kMegabyte = std::size_t{1} << 20;
// On a busy machine 16 KB took 1.5 to 2.9 times as long; 64 and 256 KB took about as long as 128
// KB.
constexpr std::size_t kTogether = std::size_t{1} << 17;

// Makes a self-signed certificate, of the same type as those of the sessions, and installs it in
// `c`.
void show_one(SSL_CTX* c) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const x = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), 0);
  X509_gmtime_adj(X509_getm_notAfter(x), 3600);
  X509_set_pubkey(x, key);
  if (!X509_sign(x, key, EVP_sha256()) || SSL_CTX_use_certificate(c, x) != 1 ||
      SSL_CTX_use_PrivateKey(c, key) != 1)
    bench::fail("tls: no certificate");
  X509_free(x);
  EVP_PKEY_free(key);
}

class Way {
 public:
  Way(int fd, bool server)
      : context_(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(context_, 0);
    SSL_CTX_set_read_ahead(context_, 1);
    SSL_CTX_set_default_read_buffer_len(context_, kTogether);
    if (server) show_one(context_);
    ssl_ = SSL_new(context_);
    BIO* const in = BIO_new_socket(fd, BIO_NOCLOSE);
    BIO* const out = BIO_new(BIO_f_buffer());
    BIO_set_write_buffer_size(out, static_cast<long>(kTogether));
    SSL_set_bio(ssl_, in, BIO_push(out, BIO_new_socket(fd, BIO_NOCLOSE)));
    if ((server ? SSL_accept(ssl_) : SSL_connect(ssl_)) != 1) bench::fail("tls: no hand-shake");
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  void put(const void* data, std::size_t n) {
    if (SSL_write(ssl_, data, static_cast<int>(n)) != static_cast<int>(n) ||
        BIO_flush(SSL_get_wbio(ssl_)) != 1)
      bench::fail("tls: the connection broke");
  }
  bool get(void* data, std::size_t n) {
    for (char* p = static_cast<char*>(data); n > 0;) {
      const int done = SSL_read(ssl_, p, static_cast<int>(n));
      if (done <= 0) return false;
      p += done, n -= static_cast<std::size_t>(done);
    }
    return true;
  }

 private:
  SSL_CTX* context_;
  SSL* ssl_;
};

std::int64_t now() { return bench::Clock::now().time_since_epoch().count(); }

void sends(int fd) {
  Way way(fd, false);
  std::vector<char> data(kMegabyte);
  for (std::size_t i = 0; i < kMegabyte; ++i) data[i] = static_cast<char>(i);
  for (char asked; way.get(&asked, 1);) {
    const std::int64_t began = now();
    way.put(data.data(), data.size());
    way.put(&began, sizeof began);
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::fail("usage: tls SAMPLES PER");
  const long samples = bench::number(argv[1]), per = bench::number(argv[2]);
  const bench::Placement place;
  const auto [here, there] = bench::tcp_pair();
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(here);
    place.pin(1);
    sends(there);
    ::_exit(0);
  }
  ::close(there);
  place.pin(0);
  {
    Way way(here, true);
    std::vector<char> data(kMegabyte);
    std::vector<double> means;
    for (long k = 0; k <= samples; ++k) {  // stretch 0 warms up
      std::int64_t total = 0;
      for (long i = 0; i < per; ++i) {
        std::int64_t began = 0;
        way.put("?", 1);
        if (!way.get(data.data(), data.size())) bench::fail("tls: the connection broke");
        total += now();
        if (!way.get(&began, sizeof began) || data[1] != 1 || data[kMegabyte - 1] != '\xFF')
          bench::fail("tls: a wrong megabyte");
        total -= began;
      }
      if (k > 0) means.push_back(static_cast<double>(total) / static_cast<double>(per));
    }
    bench::print_means(means);
  }
  ::close(here);
  bench::ended_well(other, "tls");
}
