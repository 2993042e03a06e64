//! What is left of a password in the memory of the process that verified it.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
};

use hasher::{FairKey, Hasher, Settings, Stored};

use crate::{Random, resident::alone};

/// A hash for each way from a password to a tag. None matches a random password; each takes as long as if it did.
const STORED: [&str; 13] = [
    "$argon2id$v=19$m=1024,t=2,p=1$c2FsdHNvbWVzYWx0c29tZQ$Ld+GCKFV3KHyuy3RVroCMLktD36LPx3TXZIVdBzk5fc",
    "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq",
    "$2x$05$abcdefghijklmnopqrstuuTUIYD3nfUBXnvu2pdmb2lAitqvZyCa2",
    "$wp$2y$04$abcdefghijklmnopqrstuu8eNeRpa3ldarFqgSi5UNOcUvFtBI0ky",
    "$bcrypt-sha256$v=2,t=2b,r=4$hf4ovoaG54OQxM1ct51ddO$XzLdlu6O0YoNGjvp1RrddcJ9Hopz7Wi",
    "$pbkdf2$1500$K4VwjvFeK4XQeu.9F4Iw5g$pzGPYYWSWnEFAcUBL4u3rRHrvxI",
    "$pbkdf2-sha256$1500$Uiql9D6HkFLqXWsNobSW8g$sDkiP4NPJ2S.IYo.2fKDSSfYDAn506j9B8wzu2ZR88I",
    "$pbkdf2-sha512$i=1000,l=20$c2l4dGVlbiBieXRlIHNsdA$MY36Y1wfpLg9S8MhluzrQBGRvJk",
    "$scrypt$ln=10,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "$P$984478476IagS59wHZvyQMArzfx58u.",
    "$S$C33783772bRXEx1aCsvY.dqgaaSu76XmVlKrW9Qu8IQlvxHlmzLf",
    "$5$rounds=1000$saltstring$3dlQDYsIvobiTdBmdRh69499cPg0FjGUz9fG5xex1vC",
    "pbkdf2_sha256$1000$salt$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
];

/// A password that a search of this process does not find: every byte is masked.
struct Masked(Vec<u8>);

const MASK: u8 = 0xA5;
/// What an HMAC mixes its key with (RFC 2104 §2): anybody can remove it again.
const PADS: [u8; 3] = [0, 0x36, 0x5C];
/// This many consecutive bytes are no coincidence.
const PIECE: usize = 12;

impl Masked {
    fn random(random: &mut Random) -> Self {
        Masked((0..60).map(|_| (b'!' + random.between(0, 90) as u8) ^ MASK).collect())
    }

    /// Puts the password into the given place, and wipes that afterwards.
    async fn lend(&self, place: &mut [u8; 60], then: impl AsyncFnOnce(&[u8])) {
        place.iter_mut().zip(&self.0).for_each(|(byte, masked)| *byte = masked ^ MASK);
        then(place).await;
        zeroize::Zeroize::zeroize(place);
    }

    /// Whether a piece of the password is there, as it is or as the key of an HMAC.
    fn is_in(&self, memory: &[u8]) -> bool {
        PADS.into_iter().any(|pad| [0, 16, 32, 48].into_iter().any(|piece| self.is_piece_in(memory, piece, MASK ^ pad)))
    }

    fn is_piece_in(&self, memory: &[u8], piece: usize, mask: u8) -> bool {
        let first = self.0[piece] ^ mask;
        let is_here = |at: usize| {
            let found = memory.get(at..at + PIECE);
            found.is_some_and(|found| found.iter().zip(&self.0[piece..]).all(|(byte, masked)| byte ^ mask == *masked))
        };
        memory.iter().enumerate().any(|(at, byte)| *byte == first && is_here(at))
    }
}

/// The writable parts of memory in which the password is, by the kernel's names for them.
fn found(password: &Masked) -> Vec<String> {
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut content = vec![0; 1 << 20];
    let mut places = Vec::new();
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"))) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [mut from, to] = [from, to].map(|place| u64::from_str_radix(place, 16).unwrap());
        while from < to {
            let size = content.len().min((to - from) as usize);
            // A part that has gone meanwhile holds nothing.
            let read = memory.read_at(&mut content[..size], from).unwrap_or(0);
            if password.is_in(&content[..read]) {
                places.push(line.to_owned());
            }
            from += size as u64;
        }
        content.fill(0);
    }
    places
}

#[test]
fn nothing_is_left_of_a_password() {
    alone("traces::in_a_process_of_its_own");
}

#[tokio::test]
#[ignore = "nothing_is_left_of_a_password runs it, in a process of its own"]
async fn in_a_process_of_its_own() {
    // Red where a digest is begun from a copy of the password on the stack (phpass), a job is not wiped, or the
    // block that an HMAC makes of its key is not (PBKDF2, scrypt).
    let hasher = Hasher::start(Settings::default()).unwrap();
    let key = FairKey::new("main", [192, 0, 2, 1].into());
    let mut random = Random(7);
    let mut place = Box::new([0; 60]);
    let here = Masked::random(&mut random);
    here.lend(&mut place, async |_| assert!(!found(&here).is_empty(), "what is there is found")).await;
    for text in STORED {
        let stored: Stored = text.parse().unwrap();
        let password = Masked::random(&mut random);
        password
            .lend(&mut place, async |password| assert!(!hasher.verify(&key, &stored, password).await.unwrap().ok))
            .await;
        assert_eq!(found(&password), Vec::<String>::new(), "{text}");
    }
}
