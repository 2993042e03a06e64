//! Signatures: RSA, ECDSA and EdDSA, alone and in refreshes.

use super::bench::Bench;
use super::{Experiment, Halt};
use crate::private::Setup;
use crate::report::{Expect, Group, Row, Sheet, figure};
use load::plan::Workload;
use rules::id::Kid;
use rules::jose::{Alg, Expect as Wanted, SigningKey, Typ, VerifyingKey, generate, verify};
use rules::time::Time;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub const EXPERIMENT: Experiment = Experiment {
    name: "signatures",
    title: "Signatures: RS256, ES256, EdDSA",
    hypothesis: "RSA signatures are made many times more slowly than those of elliptic curves, and checked more quickly. In \
        refreshes, which sign two tokens each, that is most of the CPU.",
    method: "An access token of about 300 bytes signed and verified over and over on one thread; then refreshes over HTTP at 20 \
        users in a closed loop, with both ID token and access token signed by the same algorithm.",
    published: None,
    run,
};

const ALGS: [(Alg, &str); 3] = [(Alg::RS256, "RS256"), (Alg::ES256, "ES256"), (Alg::EdDSA, "EdDSA")];
const NOW: Time = Time(1_767_225_600_000);

fn run(bench: &mut Bench<'_>, sheet: &mut Sheet) -> Result<(), Halt> {
    use Expect::{Less, More};
    let rows = |expected: &[Expect]| {
        ALGS.map(|(_, name)| Row::new(name, if name == "RS256" { &[] } else { expected })).to_vec()
    };
    let mut keys = ALGS.map(|(alg, _)| Pair::draw(alg)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let figures = [figure("signatures a second", "/s"), figure("verifications a second", "/s")];
    let alone = Group::new("one thread", &figures, rows(&[More, Less]));
    bench.turns(sheet, alone, &mut keys, |bench, pair| pair.measure(bench.part() / 2))?;

    let setups = ALGS.map(|(_, name)| Setup { signed: (name, name), ..bench.setup() });
    let mut servers = bench.servers(&setups)?;
    let figures = [
        figure("refreshes a second", "/s"),
        figure("server CPU of a refresh", " ms"),
        figure("p99 of a refresh", " ms"),
    ];
    let refreshes = Group::new("refreshes", &figures, rows(&[More, Less]));
    bench.turns(sheet, refreshes, &mut servers, |bench, server| {
        let report = bench.drive(&[bench.plan(server, Workload::Refresh)?], None)?;
        let cpu = report.server.map_or(f64::NAN, |server| server.cores * 1e3 / report.iterations_per_second);
        Ok(vec![report.iterations_per_second, cpu, report.latency.p99])
    })
}

/// A key pair, and the claims signed with it.
struct Pair {
    alg: Alg,
    signer: SigningKey,
    verifier: VerifyingKey,
    claims: Value,
}

impl Pair {
    fn draw(alg: Alg) -> Result<Pair, Halt> {
        let failed = |why: &dyn std::fmt::Debug| Halt::Failed(format!("a key for {alg:?}: {why:?}"));
        let pkcs8 = generate(alg).map_err(|why| failed(&why))?;
        let signer = SigningKey::from_pkcs8(alg, Kid("k".to_owned()), &pkcs8).map_err(|why| failed(&why))?;
        let verifier = signer.verifying_key().map_err(|why| failed(&why))?;
        let claims = json!({
            "iss": "https://login.example.com", "sub": "QJH1FqK8yUyLCyUoS6bmYA", "aud": "https://shop.example.com",
            "client_id": "shop", "scope": "openid profile email", "jti": "0k3kcv7r1fl1u8p2p4tq9n2v1c",
            "iat": NOW.0 / 1000, "exp": NOW.0 / 1000 + 900,
        });
        Ok(Pair { alg, signer, verifier, claims })
    }

    /// Returns signatures and verifications per second.
    fn measure(&mut self, span: Duration) -> Result<Vec<f64>, Halt> {
        let failed = |why: &dyn std::fmt::Debug| Halt::Failed(format!("a token by {:?}: {why:?}", self.alg));
        let sign = || self.signer.sign(Typ::AccessToken, &self.claims).map_err(|why| failed(&why));
        let token = sign()?;
        let (algs, types) = ([self.alg], [Typ::AccessToken]);
        let check = || {
            let claims = verify(&token, [&self.verifier], &Wanted::new(&algs, &types, NOW));
            claims.map(drop).map_err(|why| failed(&why))
        };
        Ok(vec![rate(span, || sign().map(drop))?, rate(span, check)?])
    }
}

/// Returns how often per second `work` is done.
fn rate(span: Duration, mut work: impl FnMut() -> Result<(), Halt>) -> Result<f64, Halt> {
    let (begun, mut done) = (Instant::now(), 0_u32);
    while begun.elapsed() < span {
        work()?;
        done += 1;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}
