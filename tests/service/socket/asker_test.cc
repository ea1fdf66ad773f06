// Who asks, in words and by number.
#include "server/service/socket/asker.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("who asked is told by a user's number or a certificate's name") {
  Identity who;
  who.uid = 1000;
  CHECK(AskerOf(who).uid == 1000u);
  CHECK(AskerOf(who).By() == " by user 1000");
  who.uid = kCertificateUid;
  who.by_certificate = true;
  CHECK_FALSE(AskerOf(who).uid);
  CHECK(AskerOf(who).By() == " by a certificate without a name");
  who.certificate_names = {"trainer\x1b[2J", "other"};
  CHECK(AskerOf(who).By() == " by certificate trainer\\x1b[2J");
  CHECK(Asker().By().empty());
}

TEST_CASE("nobody's number and that of certificates are not shown") {
  CHECK(ShownUid(0) == 0u);
  CHECK_FALSE(ShownUid(static_cast<uid_t>(-1)));
  CHECK_FALSE(ShownUid(kCertificateUid));
}

}  // namespace
}  // namespace penstock
