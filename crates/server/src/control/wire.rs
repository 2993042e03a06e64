//! Messages on the control socket: a length of four bytes, most significant first, then that many bytes of JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Writes one message.
///
/// # Errors
/// Those of the stream, and `InvalidData` for a message whose length does not fit into four bytes.
pub async fn send<T: Serialize>(to: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&body).await?;
    to.flush().await
}

/// Reads one message of at most `most` bytes.
///
/// # Errors
/// Those of the stream, and `InvalidData` for a longer message or one that is not what was expected.
pub async fn receive<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin), most: u32) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await?;
    let length = u32::from_be_bytes(length);
    if length > most {
        let why = format!("a message of {length} bytes is longer than {most}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    // Memory is reserved only as bytes arrive, not for the length that was announced.
    let mut body = Vec::new();
    let read = from.take(length.into()).read_to_end(&mut body).await?;
    if read < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&body)?)
}
