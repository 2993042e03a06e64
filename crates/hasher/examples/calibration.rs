//! How many passwords side by side are best on this machine: measured at the first start, kept in a file for the next.
//!
//! `cargo run -p hasher --example calibration`
#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::{error::Error, fs, io, path::Path, time::Instant};

use hasher::{Calibration, Hasher, Settings};

/// Does what every start of a program does.
async fn start(file: &Path) -> Result<(), Box<dyn Error>> {
    // A file that cannot be read is measured again; so is one of another machine, which the file names.
    let known = fs::read_to_string(file).ok().and_then(|text| Calibration::from_text(&text).ok());
    println!("  found: {}", known.as_ref().map_or("nothing", Calibration::machine));
    let hasher = Hasher::start(Settings { calibration: known, ..Settings::default() })?;

    // The program is ready from here on. Real passwords go before measurements, so nobody has to wait for them.
    let begun = Instant::now();
    let calibration = hasher.calibrate().await;
    println!("  took {:?}", begun.elapsed());
    keep(&calibration, file)?;

    for kind in hasher.kinds() {
        println!("  {}: {} side by side", kind.name, kind.lanes);
    }
    hasher.stop().await;
    // By now work may have taught more than was measured.
    keep(&hasher.calibration(), file)?;
    Ok(())
}

/// Writes it under another name first, so that nobody ever reads half a file.
fn keep(calibration: &Calibration, file: &Path) -> io::Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, calibration.to_text())?;
    fs::rename(&beside, file)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("hasher-calibration-{}", std::process::id()));
    println!("the first start");
    start(&file).await?;
    println!("the second");
    start(&file).await?;
    fs::remove_file(&file)?;
    Ok(())
}
