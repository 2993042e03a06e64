//! Frames over a connection.

use hasher::remote::frame::{Frame, HEADER};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

/// Sends one frame.
pub async fn send(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    to.write_all(&frame.encode()).await?;
    to.flush().await
}

/// Receives one frame. Not to be cancelled half-way: what was read would be lost.
pub async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut header = [0; HEADER];
    from.read_exact(&mut header).await?;
    let (kind, length) = Frame::header(header).map_err(bad)?;
    let mut body = Zeroizing::new(vec![0; length]);
    from.read_exact(&mut body).await?;
    Frame::decode(kind, &body).map_err(bad)
}
