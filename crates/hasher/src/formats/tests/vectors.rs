//! Hashes made by other implementations; the comment before a group says by which.

use super::{SNOWMAN, parse, verify};
use crate::formats::Stored;

/// Password and text.
#[rustfmt::skip]
pub(super) const VECTORS: &[(&[u8], &str)] = &[
    // argon2-cffi 25.1.0
    (SNOWMAN, "$argon2d$v=16$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Mlx+q2p3AnlIeuSm1cQtx8PS7ZZd0vWCVWojr23ybMw"),
    (SNOWMAN, "$argon2d$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$iJfHnbB42yahi8Q26+zE6R5fMDUXONEF+SeUDdEmRBQ"),
    (SNOWMAN, "$argon2i$v=16$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$IM2ZKWY3DYbRpLN88hLCHi9YE1Chu/zSlz1q/mLr2Ug"),
    (SNOWMAN, "$argon2i$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$l9KoQrP0rZwHRF7AMI8+x/T6QTy7DGIzLy/nsr27av8"),
    (SNOWMAN, "$argon2id$v=16$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$yZOB0HgD2dVNI9q3LT44Ff5MV9JpkNRvTajHhJC35ak"),
    (SNOWMAN, "$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$xyWrWCiOX2Ntnl1pulNcNPefn01q/zKzx9V1KoCf2dM"),
    (b"", "$argon2id$v=19$m=32,t=1,p=2$c2FsdHNhbHQ$2z2py03lUyATqYEWezVj5w"),
    (&[b'x'; 1024], "$argon2id$v=19$m=32,t=1,p=1$c2FsdHNhbHQ$tuHB8XuHnoGAlQh/kJs2x1zVo2QQ5r0M8jnDVYk4Uugv7NdETCpAKyWPw/A1dQ5o/tSX9nJR+gpMXVv9DPnZ3A"),
    (b"nul\0inside", "$argon2id$v=19$m=32,t=1,p=1$c2FsdHNhbHQ$e02YTk0VWSjkJvMP8XNzGpRF3zHRmTCgv9Mx58zh6cw"),
    // argon2-cffi 25.1.0 (C core), secret 00..1f
    (SNOWMAN, "$argon2id$v=19$m=64,t=2,p=1,keyid=azE$c2l4dGVlbiBieXRlIHNsdA$/onUvALPAOTGG2f0Lz4/CShNjDwW3FgjNuKF8p9eIrU"),
    (SNOWMAN, "$argon2id$v=19$m=64,t=2,p=1,keyid=azE,data=YXNzb2NpYXRlZA$c2l4dGVlbiBieXRlIHNsdA$eepXydvC2dvM0HPjqFNhna/c5vJ5QzTWTmZR0TVPHAk"),
    // argon2-cffi 25.1.0 (C core)
    (SNOWMAN, "$argon2id$v=19$m=64,t=2,p=1,data=YXNzb2NpYXRlZA$c2l4dGVlbiBieXRlIHNsdA$R19phLZtlv+Mz1CE095RNscmeHfyU0w+PCGL3vA336Y"),
    // argon2 0.45.1 of npm
    (SNOWMAN, "$argon2id$v=19$m=1024,p=1,t=2$c2FsdHNvbWVzYWx0c29tZQ$Ld+GCKFV3KHyuy3RVroCMLktD36LPx3TXZIVdBzk5fc"),
    (SNOWMAN, "$argon2id$v=19$m=1024,p=1,t=2,data=ZGF0YQ$c2FsdHNvbWVzYWx0c29tZQ$E3YnxafgV5IucbMUcpJhQUCw0ZDQ/YTiyHLcXVMsmpA"),
    // bcrypt 5.0.0
    (SNOWMAN, "$2a$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"),
    (SNOWMAN, "$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"),
    (SNOWMAN, "$2y$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"),
    (b"", "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq"),
    (&[b'x'; 72], "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i"),
    (b"nul\0inside", "$2b$04$abcdefghijklmnopqrstuuVmjM6jkjIR8S39trau1BimPhVX/DTAK"),
    // libxcrypt 4.4.33
    (SNOWMAN, "$2x$05$abcdefghijklmnopqrstuuTUIYD3nfUBXnvu2pdmb2lAitqvZyCa2"),
    (SNOWMAN, "$2y$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"),
    // WordPress, checked by PHP's password_verify
    (b"admin", "$wp$2y$10$Q1xinFjrZeLWJBvxviIL6u834Fu.evIEFHAUVisQ5O.w9Dm0sMdES"),
    // bcrypt 5.0.0, HMAC by hand
    (SNOWMAN, "$wp$2y$05$abcdefghijklmnopqrstuuwqa3CAdhnGKtBL7/OrWHEkSsIZordLK"),
    (&[b'x'; 1024], "$wp$2y$04$abcdefghijklmnopqrstuu8eNeRpa3ldarFqgSi5UNOcUvFtBI0ky"),
    // passlib 1.7.4, bcrypt 4.0.1
    (SNOWMAN, "$bcrypt-sha256$v=2,t=2b,r=5$aENCFpxbcCNy37KR/fquLO$PAFUhZ8tY9xLuLbRA.cuNQo/SsAJ2MW"),
    (SNOWMAN, "$bcrypt-sha256$2b,5$/LOiAD8RJwTGfQeOi/diE.$Eq6iBj6WR977z4Amp7Whq4BLtv2zcn."),
    (&[b'x'; 200], "$bcrypt-sha256$v=2,t=2b,r=4$hf4ovoaG54OQxM1ct51ddO$XzLdlu6O0YoNGjvp1RrddcJ9Hopz7Wi"),
    // bcrypt 5.0.0, Devise pepper 'devise pepper'
    (SNOWMAN, "$devise$importid=ZHY$2a$05$abcdefghijklmnopqrstuu0vsVUiFKJeBOcx4Y0VPuttgC.2nQBqG"),
    // passlib 1.7.4
    (SNOWMAN, "$pbkdf2$1500$K4VwjvFeK4XQeu.9F4Iw5g$pzGPYYWSWnEFAcUBL4u3rRHrvxI"),
    (SNOWMAN, "$pbkdf2-sha256$1500$Uiql9D6HkFLqXWsNobSW8g$sDkiP4NPJ2S.IYo.2fKDSSfYDAn506j9B8wzu2ZR88I"),
    (SNOWMAN, "$pbkdf2-sha512$1500$iFHK.d/7H0NoDUEoRSiFUA$88Sr/r4TTzJhK3pUKr8VRqilieo7fBgf05b7yyRC5pLxUlo0IdifIHOrJ08Z2iS17tseTQvtd70YvEGiNkMZGw"),
    // hashlib of Python 3.11
    (SNOWMAN, "$pbkdf2-sha1$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$+7QSwSD+8rhTCSyVsC7Tbr4S+vc"),
    (SNOWMAN, "$pbkdf2-sha1$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$+7QSwSD+8rhTCSyVsC7Tbr4S+veZz7yVCIM2JetTosg"),
    (SNOWMAN, "$pbkdf2-sha1$i=1000,l=64$c2l4dGVlbiBieXRlIHNsdA$+7QSwSD+8rhTCSyVsC7Tbr4S+veZz7yVCIM2JetTosgJO4ElaUSSiKw177CJjIgiFYtHm0fKITmtuytXz158Pg"),
    (SNOWMAN, "$pbkdf2-sha1$i=1000,l=100$c2l4dGVlbiBieXRlIHNsdA$+7QSwSD+8rhTCSyVsC7Tbr4S+veZz7yVCIM2JetTosgJO4ElaUSSiKw177CJjIgiFYtHm0fKITmtuytXz158PiR59RES1jJZn6BCidKSqGVgl75VMOcjx76A3+S8NrVxfxr9uA"),
    (SNOWMAN, "$pbkdf2-sha256$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$GchB9f+KYWTp/XAPdZt4/VfhtjY"),
    (SNOWMAN, "$pbkdf2-sha256$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$GchB9f+KYWTp/XAPdZt4/VfhtjYIoIb0mnmKJ3df+E8"),
    (SNOWMAN, "$pbkdf2-sha256$i=1000,l=64$c2l4dGVlbiBieXRlIHNsdA$GchB9f+KYWTp/XAPdZt4/VfhtjYIoIb0mnmKJ3df+E+m+okSstSBxh8wn6aU1xlYO1v/TESgsjC1dgtuCoeEMg"),
    (SNOWMAN, "$pbkdf2-sha256$i=1000,l=100$c2l4dGVlbiBieXRlIHNsdA$GchB9f+KYWTp/XAPdZt4/VfhtjYIoIb0mnmKJ3df+E+m+okSstSBxh8wn6aU1xlYO1v/TESgsjC1dgtuCoeEMjUDycLxOoZNOgORgzl8ADgB/x75a2Pvi3p/unCYUqT45EPBpg"),
    (SNOWMAN, "$pbkdf2-sha384$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$jb3XVES4AGsuPXhmaNvzIv+q2PQ"),
    (SNOWMAN, "$pbkdf2-sha384$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$jb3XVES4AGsuPXhmaNvzIv+q2PRlte0uc6EElOiNLpo"),
    (SNOWMAN, "$pbkdf2-sha384$i=1000,l=64$c2l4dGVlbiBieXRlIHNsdA$jb3XVES4AGsuPXhmaNvzIv+q2PRlte0uc6EElOiNLpqXAOmZX60XgPgoLESn6rtoCmkKJJxMSio940LVWUJVWQ"),
    (SNOWMAN, "$pbkdf2-sha384$i=1000,l=100$c2l4dGVlbiBieXRlIHNsdA$jb3XVES4AGsuPXhmaNvzIv+q2PRlte0uc6EElOiNLpqXAOmZX60XgPgoLESn6rtoCmkKJJxMSio940LVWUJVWcMj6tIOFfftFMrqVXI5mT/fptSGgo06NuA8mmaJJrfu/aeygg"),
    (SNOWMAN, "$pbkdf2-sha512$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJk"),
    (SNOWMAN, "$pbkdf2-sha512$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS8"),
    (SNOWMAN, "$pbkdf2-sha512$i=1000,l=64$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS/BqmEsSMVR1UO1F0ROz7yYU7ARyb4zUEM321ialY7EPw"),
    (SNOWMAN, "$pbkdf2-sha512$i=1000,l=100$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS/BqmEsSMVR1UO1F0ROz7yYU7ARyb4zUEM321ialY7EPzrtDdtWUsQscvufamk84Fg6qDTFt+VSEG2L3Y7U07TQcU38uw"),
    (b"", "$pbkdf2$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$Smi4ONyCLjUGRx32ae6GCkJSIp8"),
    (&[b'x'; 1024], "$pbkdf2-sha256$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$/IokydJKzguYFcp4RCAnRrOdaWH+H2OTtsQfuFXN/mo"),
    (b"nul\0inside", "$pbkdf2-sha256$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$gWVex7omn8yB+3WKndFd0edaEN4sxVBu0QrnI4WExBM"),
    // passlib 1.7.4
    (SNOWMAN, "{PBKDF2}1200$y9k7ByAk5JxTilHKOQcAoA$RBoGT6CsBMW8FosUgAq/zeGiIBo"),
    (SNOWMAN, "{PBKDF2-SHA256}1200$YKz1vjdmrJXSWkuplfLe2w$aOVkDiePtwHyF9ChRAVZifaePQq8VA54UTx6QVyRsHo"),
    (SNOWMAN, "{PBKDF2-SHA512}1200$HEMIgbD2fi.l9H5vTSklRA$v4/Q4ODy1qVuXNq1XI/UHloMVLJtst4aNS/SZGLofUFLgLxDLuBX8e/lwkKLNpZzMnm0b6wmlMqYLAOeEJ11xg"),
    (SNOWMAN, "$scrypt$ln=10,r=8,p=1$bW3tndO6lzLmPAdgjBFi7A$oYAuT/kQCyIafLMe5SmC4Tr3COYoTDklcJgQHLhpN1Q"),
    (SNOWMAN, "$scrypt$ln=11,r=4,p=3$QUipVSplzHkPYWwNIaT0Pg$hKEweHxhz2R5Y+IOCe2bbi73dK1XjX1loraS7lMbum0"),
    // hashlib of Python 3.11
    (SNOWMAN, "$scrypt$ln=10,r=8,p=1$c2l4dGVlbiBieXRlIHNsdA$IN9PyUFCoMnC0971gLpinv0tvdKtva5WOhy2PCmQK1RLvNYWB4aLYNsGT2LQu1j7VxVaihyV+S8ejGBlGSy2cA"),
    // libxcrypt 4.4.33
    (SNOWMAN, "$7$86..../....somesalt$qtvPi4c0AuCBNgTifeFDqbFFC9Utb18.C2bTLRYUcDA"),
    // libxcrypt 4.4.33
    (b"pleaseletmein", "$7$C6..../....SodiumChloride$kBGj9fHznVYFQMEn/qDCfrDevf9YDtcDdKvEqHJLV8D"),
    // passlib 1.7.4
    (SNOWMAN, "$P$68XLh9TipAf6itq6LIMvxRrYws/jiA1"),
    (SNOWMAN, "$H$7G/djEH/PzQ0nfBlqDTqgq8LwKTS../"),
    (b"", "$P$5znGpEUetAbllt63HiNSVvmyOaUhNE0"),
    // hashcat's example hashes, modes 400 and 7900
    (b"hashcat", "$P$984478476IagS59wHZvyQMArzfx58u."),
    (b"hashcat", "$H$984478476IagS59wHZvyQMArzfx58u."),
    (b"hashcat", "$S$C33783772bRXEx1aCsvY.dqgaaSu76XmVlKrW9Qu8IQlvxHlmzLf"),
    // hashlib of Python 3.11, the longest that are looked at and one of Drupal 6
    (&[b'x'; 1024], "$P$5saltsaltzNQofezyrFl564TWCfz3K1"),
    (&[b'x'; 512], "$S$7saltsalthN32hKOfwUdx.V0b/BtwFa7feZ3pfHZs5mh07924WIw"),
    (SNOWMAN, "U$S$9saltsaltcD93SfRr9/yI8CfSio15MF09qgwyBVMDZcqgyQVixxH"),
    // the specification of SHA-crypt
    (b"Hello world!", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
    (b"Hello world!", "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"),
    // crypt of Python 3.11, libxcrypt
    (SNOWMAN, "$5$rounds=1000$saltstring$3dlQDYsIvobiTdBmdRh69499cPg0FjGUz9fG5xex1vC"),
    (SNOWMAN, "$6$rounds=1000$saltstring$tCM6i75CN.fhL9aiMrOxJ.aGBAOh/ei/RoJTvUsDXfctUh.POFidekkyEIFRYvDdjZPvuSTsiAM2AXtS2scgc."),
    (SNOWMAN, "$5$sixteencharacter$1TtSqvdCgJPuaEN5xfgm3QsMq//D.4Rha8dpBdD8.QC"),
    (SNOWMAN, "$6$x$A2bc2kosFxzaW7b5a1k1jnNvgCyJjqGGCQh8gz.WkRunC1mf6Rjc3/4l4i76gC5kX7G50HIF7trqoUeBM7YYN1"),
    (b"", "$6$rounds=1400$anotherlongsalts$CvyNSQwf6bQerEu9N9SQOWtPnrIu1XZzaKZQpGKfoQ/SaumCMqHGCEvfGxtQ5xG2Au23d5sGapl8LQH64hLtn/"),
    (b"", "$5$rounds=1003$a$roZgeT.jl.U4kfYNsXuy.GiQoz4UdvLR6oyrzKOJKw3"),
    (&[b'x'; 511], "$6$rounds=1001$longpassword$ChZi4Aea5gdisBq4JiAZPwKfe0.vqY.Shx6y0FwFmv.0sGXlei63SZy5IraAOY6DSknUuCM04.7m.qI8aKPXj."),
    (&[b'x'; 511], "$5$rounds=1001$longpassword$Fd9WOQWbHGOl8A1Jtq6.kZM5pgk7CgVfxijDBT8CZmD"),
    (SNOWMAN, "{CRYPT}$5$rounds=1000$saltstring$3dlQDYsIvobiTdBmdRh69499cPg0FjGUz9fG5xex1vC"),
    (SNOWMAN, "{crypt}$6$rounds=1000$saltstring$tCM6i75CN.fhL9aiMrOxJ.aGBAOh/ei/RoJTvUsDXfctUh.POFidekkyEIFRYvDdjZPvuSTsiAM2AXtS2scgc."),
    (SNOWMAN, "{SHA256-CRYPT}$5$rounds=1000$saltstring$3dlQDYsIvobiTdBmdRh69499cPg0FjGUz9fG5xex1vC"),
    (SNOWMAN, "{SHA512-CRYPT}$6$rounds=1000$saltstring$tCM6i75CN.fhL9aiMrOxJ.aGBAOh/ei/RoJTvUsDXfctUh.POFidekkyEIFRYvDdjZPvuSTsiAM2AXtS2scgc."),
    (SNOWMAN, "{CRYPT}$7$86..../....somesalt$qtvPi4c0AuCBNgTifeFDqbFFC9Utb18.C2bTLRYUcDA"),
    // the README of thesubtlety/389-ds-password-check
    (b"Password123", "{PBKDF2_SHA256}AAAnEGTxXtnR/oox922/jZyjH6fmiIdW4AwIYZE2LfCVL/SUz5GbAHfjRj4NbN2u8ul0/j/dUzJ4gQSawGALGHZV74nOAtPttoZDTsh7BeGCLD/Ps7vRugwDdz9uPARXzF3bD/8qCpumvRGb4pehzfQsk+FnGgTwi0rUeVaN8a7Kbv8ZpRfU2sd+208F/YL42BWAh/2tv0I4vY7ZsrCZcrUJtgKWy5Nr+t78zmPkrZsX/kgfnGdXhr50kN10cmkLQ0/cZOXo9CAkpeZyFu+wQ5vQdUaES2Vd5kBjJYPCkr4b2ocr4ETQi3IGO2GGCoCetmMIETsudRVSxUNBbva+Vgxin5Apu4wIP/0ZyuGK6TuWLqLnNpmK3RkRx0xjqJ4nN2Ok0ul0XYBJcYIBt4UoaVM2uSa/Etw28Uy+zAsUv2AOiRo5"),
    // hashlib of Python 3.11
    (SNOWMAN, "{PBKDF2_SHA256}AAAF3HNpeHR5LWZvdXIgYnl0ZXMgb2Ygc2FsdCwgYXMgMzg5IERpcmVjdG9yeSBTZXJ2ZXIgdGFrZXMgdGhlbSAuLi77aJp5ZMxTZ8+vMYORVDI5mQyD80TqIqNwAgMwhzFHeVWa8Y4BnySqxGD4bu2A2fhboKNV/Vfk/nw5aPSD1K9piQi8eKoCjcGHH51DZSRW32PAvNkxuWP4xF47uV++6j/tHth8YQ3KFhqgxLOkdQihmIuDUzSSHdrfMKf6RdAq9Tjp2KYoHbKFccSCa8p51+B63xNAA86VV3x9xsYCSU9AyXWP9ozzAQWTz7AJEb2rh9moDwAg4tJM+PNOZ3O3PLSKa4Gsz11dLgjsIIT3/jthfSzZcMuUBoiTYgCUIcIKgvViapOBCcHJZc1+aWOcI55l1Gda3iAbLY9hOJmE6CP4"),
    // the tests of 389 Directory Server's own PBKDF2, whose base64 is padded
    (b"eicieY7ahchaoCh0eeTa", "{PBKDF2-SHA256}36000$eElFb3p1WlZBb1lt$uW1b35DUKyhvQAf1mBqMvoBDcqSD06juzyO/nmyV0+w="),
    // Django 5.2.19
    (SNOWMAN, "pbkdf2_sha256$1500$saltSALT0123456789abcd$hxD1dX589cfPJuFxPro05Lvj5Y/hWjhfYSlMXyb7+PY="),
    (SNOWMAN, "pbkdf2_sha1$1500$saltSALT0123456789abcd$S051a/96WNvncupbIJLQ28Iitk0="),
    (SNOWMAN, "argon2$argon2id$v=19$m=64,t=2,p=2$c2FsdFNBTFQwMTIzNDU2Nzg5YWJjZA$Mw37BYjsR8VTZ0DWzvqtTBDhgzLKb4bFvs1KJiC8M4I"),
    (SNOWMAN, "bcrypt_sha256$$2b$05$/EKcIE7Vn3G2T3SURcG4NeksgsPxqMFAa4bmxVdM0mZBflkXYCe3G"),
    (&[b'x'; 1024], "bcrypt_sha256$$2b$05$m.So0dqFo09wyEzjaPwFaOj8.htlikfl5546IEZIQfVHzLjUJuV16"),
    (SNOWMAN, "bcrypt$$2b$05$IYJFP6Nhc3illHwTO8da8.UNJnJ79Ho6uGi0HSqRhT0uRc5UFLj0K"),
    (SNOWMAN, "scrypt$1024$saltSALT0123456789abcd$8$5$cFqsj6RfLGsm+gfs7739pCTVvfqtY/Eg7Xcy+czStMlK1aBIELyS1oGNHtvCL6A0++k6j5qwKD4b1A/wlD/kKw=="),
    // Werkzeug 3.1.9
    (SNOWMAN, "pbkdf2:sha256:1500$q1sedpETV8ND3k0X$0f2e4b9a961725a7abc0697dab9395fd7c826e61f11fcd4ced578e5509484ce1"),
    (SNOWMAN, "pbkdf2:sha1:1500$lzE88MRfNIiVMwRU$7e56e5ba74e2efd90d80106d1443cc07c6bfa261"),
    (SNOWMAN, "pbkdf2:sha512:1500$7BHbhSCv$27b0017dfacbb99ab926d6d850c997e8265bd1c57701afa6b77771332fab76230fb3157ed2c7d6b6d1236e709c4d1f346e15abf5f11d9c542609c31d59e2aa50"),
    (SNOWMAN, "scrypt:1024:8:2$ldSGVjMY8TRLXWHD$a4ac1ba7cb807f92cb2c50507d2a5036ee5b5b68c3ffc7cdd4cb28e6afba30294df3575cab55bf5271b3b371dad4688d31bcf6fea9f0dd7937c4daf1a723fbdb"),
    // bcrypt 5.0.0
    (SNOWMAN, "{CRYPT}$2y$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"),
    // argon2-cffi 25.1.0
    (SNOWMAN, "{ARGON2}$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$xyWrWCiOX2Ntnl1pulNcNPefn01q/zKzx9V1KoCf2dM"),
    // bcrypt 5.0.0
    (SNOWMAN, "{blf-crypt}$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym"),
    // PasswordHasherTest of ASP.NET Core Identity, version 2
    (b"my password", "AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg=="),
    // PasswordHasherTest of ASP.NET Core Identity, version 3
    (b"my password", "AQAAAAEAACcQAAAAEAABAgMEBQYHCAkKCwwNDg+yWU7rLgUwPZb1Itsmra7cbxw2EFpwpVFIEtP+JIuUEw=="),
    // hashlib of Python 3.11
    (SNOWMAN, "AQAAAAAAAAfQAAAAEHNpeHRlZW4gYnl0ZSBzbHQtVR4iUV0Yx2AvFP71L/n5tBlwbTKWKTmH3/IE+fkRTg=="),
    (SNOWMAN, "AQAAAAEAAAfQAAAAEHNpeHRlZW4gYnl0ZSBzbHTvw+MJEsCHrJwNgNSGZW6fCvxAD/Nam206NOwSyH9xGw=="),
    (SNOWMAN, "AQAAAAIAAAfQAAAAEHNpeHRlZW4gYnl0ZSBzbHRDctxnWPvfGLMiRha2ZyLla/ZeFkW9KeAFAJ8Tn0+UrQ=="),
    // the example of firebase/scrypt
    (b"user1password", "$firebase$ln=14,r=8,p=1,importid=ZmI$42xEC+ixf3L2lwc$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ"),
    // argon2-cffi 25.1.0 over hashlib
    (SNOWMAN, "$wrapped$d=md5$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$SJVtc/+2B48TgbvhGvhSJ+BEpfKdyT78Tus1ycVEJt4"),
    (SNOWMAN, "$wrapped$d=md5,salt=before:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RGkWiFbzEZMsoxL/0kbuQU3cNm3Q+rkUVFKeRJvnbRA"),
    (SNOWMAN, "$wrapped$d=md5,salt=after:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$SMXW6pe+ogCx3bq0ZRqBdnjvCrLCX+rvzGU1qBXvlXQ"),
    (SNOWMAN, "$wrapped$d=sha1$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$1aA0zqYO/ffIzLpC6zGGZjV4n7q+MWJ7lc4DnSBvmPs"),
    (SNOWMAN, "$wrapped$d=sha1,salt=before:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$i5AqZ2xYdBS7e8tajcLwuJZqmj1GdOeZCDA7O+qAZdE"),
    (SNOWMAN, "$wrapped$d=sha1,salt=after:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$8on/YbQNqnekbGQgc0OjSRLsq34V44H3rn+afpFw7Z4"),
    (SNOWMAN, "$wrapped$d=sha256$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$+8ltks3ShsYvllvUQr8ST2NgD+ij27PGtnfZA/pCBQk"),
    (SNOWMAN, "$wrapped$d=sha256,salt=before:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$aL5d/HTWu3QJOq0FzvQ6phFe+56vpD6Cpz3lQfWk9Js"),
    (SNOWMAN, "$wrapped$d=sha256,salt=after:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$FIgTLzDRSqc/VtTnG60C9nipV+b3WEDnoVicE9PUip8"),
    (SNOWMAN, "$wrapped$d=sha384$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$LRsZo4bz0KFw1q5CDSF9I8wl9e1bpGS8/fcz+ZTKPJg"),
    (SNOWMAN, "$wrapped$d=sha384,salt=before:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$iybUZ+8sC/DPAyL3eb9ECflon0VXrXkN8uZY56Ww0eg"),
    (SNOWMAN, "$wrapped$d=sha384,salt=after:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$oUxLL4Z55OU5bBnZ3YIpon5egfH3jDtpCmhYcv+BmqM"),
    (SNOWMAN, "$wrapped$d=sha512$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$gmngHmrLOGrvshSxgXseijv8Q3JbyWocxyDdVjRVvTE"),
    (SNOWMAN, "$wrapped$d=sha512,salt=before:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$I/aC7S4AGM5aCt3b0o8iK5oJAnnsiAgiJ9xkghsNo4M"),
    (SNOWMAN, "$wrapped$d=sha512,salt=after:c2FsdA$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$IwKlckyNu5F7eVig28M5FtfbbfEN7P74n1YXZgsjhmY"),
    // argon2-cffi 25.1.0 (C core), blake2b and hmac of Python 3.11
    (SNOWMAN, "$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4"),
];

/// The one of Devise.
pub(super) fn devise() -> &'static str {
    VECTORS.iter().find(|(_, text)| text.starts_with("$devise$")).unwrap().1
}

#[test]
fn each_accepts_its_password_and_is_kept_in_one_spelling() {
    for &(password, text) in VECTORS {
        let stored = parse(text);
        assert!(verify(&stored, password), "{text}");
        let kept = stored.to_string();
        let again: Stored = parse(&kept);
        assert!(again == stored && again.to_string() == kept, "{kept}");
        assert!(verify(&again, password), "{kept}");
    }
}

#[test]
fn each_refuses_every_other_password() {
    for &(password, text) in VECTORS {
        let stored = parse(text);
        // bcrypt looks at 72 bytes: a test of its own.
        if password.len() != 72 {
            assert!(!verify(&stored, &[password, b"x"].concat()), "{text}");
        }
        if let Some((_, shorter)) = password.split_last() {
            let shorter = &password[..shorter.len()];
            assert!(!verify(&stored, shorter), "{text}");
            assert!(!verify(&stored, b""), "{text}");
        }
        if let Some((first, rest)) = password.split_first() {
            assert!(!verify(&stored, &[&[first ^ 0x20], rest].concat()), "{text}");
        }
    }
}

/// Of a derived key of several blocks only the first is computed, so there the change is near its beginning.
#[test]
fn each_changed_tag_is_refused() {
    for &(password, text) in VECTORS {
        let kept = parse(text).to_string();
        let field = kept.rfind('$').unwrap() + 1;
        let at = if kept.len() - field > 53 { field + 6 } else { kept.len() - 20 };
        let other = if kept.as_bytes()[at] == b'B' { "C" } else { "B" };
        let changed = format!("{}{other}{}", &kept[..at], &kept[at + 1..]);
        assert!(!verify(&parse(&changed), password), "{changed}");
    }
}

#[test]
fn bcrypt_hashes_72_bytes_and_what_is_hashed_before_it_has_no_limit() {
    let bcrypt = VECTORS.iter().find(|(password, text)| password.len() == 72 && text.starts_with("$2b$")).unwrap();
    let stored = parse(bcrypt.1);
    assert!(verify(&stored, &[b'x'; 73]) && verify(&stored, &[b'x'; 1024]));
    assert!(!verify(&stored, &[b'x'; 71]));
    for (password, text) in VECTORS.iter().filter(|(password, text)| password.len() == 1024 && text.contains("$2")) {
        let mut other = password.to_vec();
        other[1023] = b'y';
        assert!(!verify(&parse(text), &other), "{text}");
    }
}

/// Some implementations wrote random bits after the salt; no implementation reads those, nor those after the tag.
#[test]
fn bits_of_bcrypt_that_stand_for_nothing_are_dropped() {
    let clean = "$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym";
    for (from, to) in [("stuuzx", "stuvzx"), ("GIbym", "GIbyn")] {
        let dirty = clean.replacen(from, to, 1);
        assert!(clean != dirty && parse(&dirty) == parse(clean));
        assert_eq!(parse(&dirty).to_string(), clean);
        assert!(verify(&parse(&dirty), SNOWMAN));
    }
}

/// The names of one algorithm lead to one text.
#[test]
fn what_others_write_differently_is_kept_alike() {
    for (text, kept) in [
        ("$H$984478476IagS59wHZvyQMArzfx58u.", "$P$984478476IagS59wHZvyQMArzfx58u."),
        (
            "{blf-crypt}$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym",
            "$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym",
        ),
        (
            "AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg==",
            "$pbkdf2-sha1$i=1000,l=32$AAECAwQFBgcICQoLDA0ODw$rpAhDA39MskNvTWLm4IByFWNLHRFH3cnjPhNS7R9biY",
        ),
        (
            "$pbkdf2-sha512$i=1000$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS8",
            "$pbkdf2-sha512$i=1000,l=32$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJkYQXPyYB0SkurKgS8",
        ),
        ("$argon2i$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAA", "$argon2i$v=16$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAA"),
    ] {
        assert_eq!(parse(text).to_string(), kept);
    }
}
