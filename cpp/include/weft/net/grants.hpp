// Determines which names a program may hold. The program's certificate, which the authority has
// signed, lists them (WIRE-NETWORKS.md 17.3).
//
//   Member m = Member::of(certificate);        m.may_hold("lab/results")
//
// Each alternative name of a certificate that is a URI of the scheme `weft` grants a name, or all
// names with a certain beginning: weft:lab/results, weft:lab/*, weft:host=gpu1, weft:*.
#pragma once
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::net::detail {

// Returns whether the grant covers this name. python/src/weft/_net/name_rules.py does the same in
// Python.
inline bool grants(std::string_view grant, std::string_view name) {
  if (grant.empty() || grant.back() != '*') return grant == name;
  const std::string_view beginning = grant.substr(0, grant.size() - 1);
  return name.substr(0, beginning.size()) == beginning &&
         (beginning.empty() || std::string_view("/.=").find(beginning.back()) != beginning.npos);
}

// The owner of a certificate, and the names that programs with it may hold.
struct Member {
  std::string name;
  std::vector<std::string> grants;

  static Member of(const X509* certificate) {
    static constexpr std::string_view kScheme = "weft:";
    Member m;
    if (!certificate) return m;
    const X509_NAME* const subject = X509_get_subject_name(certificate);
    if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0)
      m.name = text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    const std::unique_ptr<GENERAL_NAMES, Free> all(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; i < (all ? sk_GENERAL_NAME_num(all.get()) : 0); ++i) {
      const GENERAL_NAME* const each = sk_GENERAL_NAME_value(all.get(), i);
      if (each->type != GEN_URI) continue;
      const std::string uri = text(each->d.uniformResourceIdentifier);
      if (uri.compare(0, kScheme.size(), kScheme) == 0)
        m.grants.push_back(uri.substr(kScheme.size()));
    }
    return m;
  }
  bool may_hold(std::string_view which) const {
    return std::any_of(grants.begin(), grants.end(),
                       [&](const std::string& g) { return detail::grants(g, which); });
  }
  // Names the member and its grants, for messages.
  std::string said() const {
    std::string of;
    for (const std::string& g : grants) of += (of.empty() ? "" : ", ") + g;
    if (of.empty()) of = "no name, as those that an older Weft made";
    if (of.size() > kTold) of = of.substr(0, kTold) + " …";
    return "the certificate of '" + name + "' is for " + of;
  }
  // Returns the command that makes keys which permit this name too.
  std::string keys_command(const std::string& which) const {
    std::string offers;
    for (const std::string& g : grants) offers += " --offers '" + g + "'";
    if (offers.size() > kTold) offers = " --offers …";
    return "`weft net keys FOLDER --name '" + name + "'" + offers + " --offers '" + which + "'`";
  }

 private:
  // The maximum size in bytes of a list of grants in a message.
  static constexpr std::size_t kTold = 300;
  struct Free {
    void operator()(GENERAL_NAMES* n) const { GENERAL_NAMES_free(n); }
  };
  // Returns all bytes of the string: a zero byte does not end the text.
  static std::string text(const ASN1_STRING* s) {
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(s)),
            static_cast<std::size_t>(ASN1_STRING_length(s))};
  }
};

}  // namespace weft::inline WEFT_ABI::net::detail
