//! A server far away, simulated on this machine: a proxy that forwards connections and delays every byte.
//!
//! `delay LISTEN TARGET MILLISECONDS`: half of the delay on the way there, half on the way back. It uses plain threads
//! that sleep: they wake less than a tenth of a millisecond late, while the timers of an async runtime have a
//! resolution of a millisecond.

use std::error::Error;
use std::io::{Read, Write, stdout};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, target, milliseconds] = arguments.as_slice() else {
        return Err("delay LISTEN TARGET MILLISECONDS".into());
    };
    let one_way = Duration::from_secs_f64(milliseconds.parse::<f64>()? / 2e3);
    let listener = TcpListener::bind(listen)?;
    writeln!(stdout(), "{}", listener.local_addr()?)?;
    for near in listener.incoming() {
        let (near, far) = (near?, TcpStream::connect(target)?);
        pass(near.try_clone()?, far.try_clone()?, one_way)?;
        pass(far, near, one_way)?;
    }
    Ok(())
}

/// Forwards bytes, each chunk delayed by the same time: a chunk in flight does not hold up the chunks after it.
fn pass(mut from: TcpStream, mut to: TcpStream, late: Duration) -> Result<(), Box<dyn Error>> {
    to.set_nodelay(true)?;
    let (hand, under_way) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            if hand.send((Instant::now() + late, chunk[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (at, bytes) in under_way {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    Ok(())
}
