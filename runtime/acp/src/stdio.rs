//! Standard input and output as streams, for programs whose standard streams carry a protocol. Threads of their own
//! read and write them: a read that never ends, or a reader that does not read, must not keep the program from
//! ending, as tokio's own would.

use std::fs::File;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::os::unix::net::UnixStream as BlockingStream;

use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// How much is read at once, in bytes: as much as a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// Standard input. Must be called inside a tokio runtime; nobody else may read it then.
pub fn input() -> std::io::Result<UnixStream> {
    reading(std::io::stdin())
}

/// Standard output, or whatever stands for it. Must be called inside a tokio runtime. What was written to the
/// stream is on its way; whoever wants it to arrive drops the stream and waits for [`Written`].
pub fn output(file: File) -> std::io::Result<(UnixStream, Written)> {
    writing(file)
}

/// Waits for the end of an output.
pub struct Written(oneshot::Receiver<std::io::Result<()>>);

impl Written {
    /// Waits until everything was written, or cannot be written.
    pub async fn wait(self) -> std::io::Result<()> {
        // The thread always says how it ended, unless it panicked.
        self.0.await.unwrap_or_else(|_| Err(std::io::Error::other("the writer has panicked")))
    }
}

fn reading(source: impl Read + Send + 'static) -> std::io::Result<UnixStream> {
    let (ours, theirs) = pair()?;
    // It ends with the source, or when nobody takes what it reads.
    thread("tenon-stdin", move || drop(pump(source, &theirs)))?;
    Ok(ours)
}

fn writing(sink: impl Write + Send + 'static) -> std::io::Result<(UnixStream, Written)> {
    let (ours, theirs) = pair()?;
    let (ended, end) = oneshot::channel();
    thread("tenon-stdout", move || {
        // Perhaps nobody wants to know.
        let _ = ended.send(pump(&theirs, sink));
    })?;
    Ok((ours, Written(end)))
}

fn pair() -> std::io::Result<(UnixStream, BlockingStream)> {
    let (ours, theirs) = BlockingStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs))
}

/// Starts a thread that the end of the program does not wait for.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Carries everything over as soon as it comes.
pub(crate) fn pump(mut from: impl Read, mut to: impl Write) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return to.flush(),
            Ok(read) => {
                to.write_all(&chunk[..read])?;
                to.flush()?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn input_arrives_whole_and_ends() {
        let text = vec![b'x'; 3 * CHUNK_BYTES + 1];
        let mut stream = reading(std::io::Cursor::new(text.clone())).unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        assert!(read == text);
    }

    #[tokio::test]
    async fn everything_is_written_before_the_end() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out");
        let text = vec![b'x'; 3 * CHUNK_BYTES + 1];
        let (mut stream, written) = output(File::create(&path).unwrap()).unwrap();
        stream.write_all(&text).await.unwrap();
        drop(stream);
        written.wait().await.unwrap();
        assert!(std::fs::read(&path).unwrap() == text);
    }

    #[tokio::test]
    async fn a_reader_that_has_left_is_an_error() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (mut stream, written) = writing(writer).unwrap();
        // It may be noticed while writing, or at the end.
        let _ = stream.write_all(b"text").await;
        drop(stream);
        assert_eq!(written.wait().await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
