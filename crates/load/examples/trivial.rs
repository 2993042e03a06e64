//! A provider that only answers requests, to find out how much load the generator can make.
//!
//! `trivial [ADDRESS:PORT]` prints its URL, and serves its metadata and a dummy key set on one thread.

use std::error::Error;
use std::io::{Write, stdout};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(async {
        let listener = TcpListener::bind(listen).await?;
        let url = format!("http://{}", listener.local_addr()?);
        writeln!(stdout(), "{url}")?;
        let metadata = answer(&format!(
            r#"{{"issuer":"{url}","authorization_endpoint":"{url}/a","token_endpoint":"{url}/t","jwks_uri":"{url}/k"}}"#
        ));
        let answers: &'static [String; 2] = Box::leak(Box::new([metadata, answer(r#"{"keys":[{"kty":"EC"}]}"#)]));
        loop {
            let (stream, _) = listener.accept().await?;
            // A visitor that disconnects ends only its own task.
            tokio::task::spawn_local(async move { serve(stream, answers).await.ok() });
        }
    }))
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Serves one request after the other; none of them has a body.
async fn serve(mut stream: TcpStream, [metadata, keys]: &[String; 2]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::with_capacity(4 * 1024);
    while stream.read_buf(&mut request).await? > 0 {
        if request.ends_with(b"\r\n\r\n") {
            let answer = if request.starts_with(b"GET /k") { keys } else { metadata };
            stream.write_all(answer.as_bytes()).await?;
            request.clear();
        }
    }
    Ok(())
}
