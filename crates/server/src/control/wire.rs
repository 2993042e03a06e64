//! Messages on the control socket: a length of four bytes, most significant first, then that many bytes of JSON. Some
//! hold passwords: no buffer grows and leaves a copy behind, and each is cleared after use.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

/// Writes one message.
///
/// # Errors
/// Those of the stream, and `InvalidData` for a message whose length does not fit into four bytes.
pub async fn send<T: Serialize>(to: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    let body = written(message)?;
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
    let length = length as usize;
    let mut body = Zeroizing::new(vec![0; length.min(AT_FIRST)]);
    let mut read = 0;
    loop {
        let rest = body.get_mut(read..).unwrap_or_default();
        read += from.read_exact(rest).await?;
        if read == length {
            return Ok(serde_json::from_slice(&body)?);
        }
        let mut larger = Zeroizing::new(vec![0; length.min(read * 2)]);
        larger.iter_mut().zip(body.iter()).for_each(|(to, from)| *to = *from);
        body = larger;
    }
}

/// The bytes for which memory is reserved before they arrive.
const AT_FIRST: usize = 64 << 10;

/// Returns a message as JSON, in memory that is measured first.
fn written<T: Serialize>(message: &T) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, message)?;
    let mut body = Zeroizing::new(Vec::with_capacity(length.0));
    serde_json::to_writer(&mut *body, message)?;
    Ok(body)
}

/// Counts what is written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_is_received_whatever_its_length_and_never_outgrew_its_memory() {
        for length in [0, 1, AT_FIRST - 2, AT_FIRST - 1, AT_FIRST, 3 * AT_FIRST, 5 * AT_FIRST + 7] {
            let text = "p".repeat(length);
            let body = written(&text).unwrap();
            assert_eq!(body.capacity(), body.len(), "it grew");
            let mut sent = Vec::new();
            send(&mut sent, &text).await.unwrap();
            assert_eq!(receive::<String>(&mut &*sent, u32::MAX).await.unwrap(), text);
            let cut = sent.len() - 1;
            let error = receive::<String>(&mut sent.get(..cut).unwrap(), u32::MAX).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
