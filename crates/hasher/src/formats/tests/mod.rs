//! Every format against hashes that other implementations made, and against everything that is none.

mod imports;
mod lengths;
mod new_hashes;
mod nuls;
mod prints;
mod refusals;
mod shapes;
mod texts;
mod vectors;

use zeroize::Zeroizing;

use super::{Prepared, Stored, Subject};
use crate::{
    argon2::{self, Block},
    bcrypt, cpu,
    gate::Refusal,
    job::{Input, Kind, Tag},
    pepper::{Key, KeyId, Keys},
};

const ALICE: Subject<'_> = Subject { realm: "main", user: "alïce" };
const SNOWMAN: &[u8] = "pässword☃".as_bytes();

fn id(name: &[u8]) -> KeyId {
    KeyId::new(name).unwrap()
}

fn pepper() -> Key {
    Key::pepper(id(b"k1"), Zeroizing::new(std::array::from_fn(|at| at as u8)))
}

fn binding() -> Key {
    Key::binding(id(b"b1"), Zeroizing::new(std::array::from_fn(|at| 32 + at as u8)))
}

/// Every key that a vector names.
fn keys() -> Keys {
    let signer = "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==";
    let signer = Key::import(id(b"fb"), Zeroizing::new(signer.as_bytes().to_vec()));
    let devise = Key::import(id(b"dv"), Zeroizing::new(b"devise pepper".to_vec()));
    Keys::new([pepper(), binding(), signer, devise]).unwrap()
}

/// The slow part.
fn tag(kind: Kind, input: &Input) -> Tag {
    match (kind, input) {
        (Kind::Argon2(params), Input::Argon2(h0)) => {
            let mut memory = vec![Block::ZERO; params.memory_blocks()];
            let mut tags = [Zeroizing::new(vec![0; params.tag_bytes as usize])];
            argon2::fill(cpu::Level::best(), &params, std::slice::from_ref(h0), &mut memory, &mut tags);
            let [tag] = tags;
            tag
        }
        (Kind::Bcrypt { cost }, Input::Bcrypt(job)) => {
            let mut tags = [[0; 23]];
            bcrypt::crypt(cost, std::slice::from_ref(job), &mut tags);
            Zeroizing::new(tags[0].to_vec())
        }
        (Kind::Serial(serial), Input::Serial { password, salt }) => serial.tag(password, salt).unwrap(),
        _ => panic!("kind and input do not belong together"),
    }
}

fn verify_as(stored: &Stored, password: &[u8], subject: Subject<'_>, keys: &Keys) -> Result<bool, Refusal> {
    let Prepared { kind, input, check } = stored.prepare(password, subject, keys)?;
    Ok(check.accepts(&tag(kind, &input)))
}

fn verify(stored: &Stored, password: &[u8]) -> bool {
    verify_as(stored, password, ALICE, &keys()).unwrap()
}

fn parse(text: &str) -> Stored {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_algorithm_is_listed() {
    let bound =
        "$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4";
    let texts = vectors::VECTORS.iter().map(|(_, text)| *text).chain([bound]);
    let mut found: Vec<_> = texts.map(|text| parse(text).scheme()).collect();
    found.sort_unstable();
    found.dedup();
    let mut listed = Stored::SCHEMES.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
}
