//! scrypt against the `scrypt` crate over random parameters, and what is left of its memory.

use hasher::{FairKey, Hasher, Policy, Settings, Stored};

use crate::{Random, cases};

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
    STANDARD_NO_PAD.encode(bytes)
}

fn start() -> (Hasher, FairKey) {
    let policy = Policy::weak(64, 1, 1).unwrap();
    let hasher = Hasher::start(Settings { policy, ..Settings::default() }).unwrap();
    (hasher, FairKey::new("main", [192, 0, 2, 1].into()))
}

/// What the oracle stores for this password.
fn oracle((log_n, r, p): (u8, u32, u32), password: &[u8], salt: &[u8], bytes: usize) -> String {
    let mut key = vec![0; bytes];
    let params = scrypt::Params::new(log_n, r, p).unwrap();
    scrypt::scrypt(password, salt, &params, &mut key).unwrap();
    format!("$scrypt$ln={log_n},r={r},p={p}${}${}", base64(salt), base64(&key))
}

#[tokio::test]
async fn verification_agrees_with_the_oracle_over_random_parameters() {
    let (hasher, key) = start();
    let mut draw = Random(7914);
    for n in 0..cases(60) {
        // Elements that fill blocks of the arena, and that do not; one and several of them mixed.
        let cost = (draw.between(10, 12) as u8, draw.between(1, 17), draw.between(1, 4));
        let (password, salt) = (draw.bytes(0, 100), draw.bytes(4, 64));
        let text = oracle(cost, &password, &salt, draw.between(16, 70) as usize);
        let stored: Stored = text.parse().unwrap();
        assert!(hasher.verify(&key, &stored, &password).await.unwrap().ok, "case {n}: {text}");
        let other = [&password[..], b"x"].concat();
        assert!(!hasher.verify(&key, &stored, &other).await.unwrap().ok, "case {n}: {text}");
    }
}

#[cfg(target_os = "linux")]
mod memory {
    use std::process::Command;

    use hasher::{FairKey, Hasher, Settings, Stored};

    /// Resident memory of this process, in bytes.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn goes_back_to_the_system() {
        let alone = ["--exact", "scrypt::memory::in_a_process_of_its_own", "--ignored", "--nocapture"];
        let ran = Command::new(std::env::current_exe().unwrap()).args(alone).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    }

    /// Firebase's parameters: 16 MiB, which glibc keeps to itself once such a piece was freed.
    #[tokio::test]
    #[ignore = "goes_back_to_the_system runs it, in a process of its own"]
    async fn in_a_process_of_its_own() {
        let hasher = Hasher::start(Settings::default()).unwrap();
        let key = FairKey::new("main", [192, 0, 2, 1].into());
        let tail = "$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA";
        let kinds = [12, 14, 13, 14].map(|n| format!("$scrypt$ln={n},r=8,p=1{tail}").parse::<Stored>().unwrap());
        let before = resident();
        for stored in kinds.iter().cycle().take(12) {
            assert!(!hasher.verify(&key, stored, b"password").await.unwrap().ok);
        }
        let after = resident();
        assert!(after <= before + (6 << 20), "{} KiB before, {} KiB after", before >> 10, after >> 10);
    }
}
