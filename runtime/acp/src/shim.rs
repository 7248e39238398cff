//! `tenon mcp-shim`: what an agent starts that takes MCP servers as programs only. It knows nothing of MCP: it
//! carries bytes between its standard streams and the socket of an endpoint.

use std::fs::File;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenon_host::private_socket::Address;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::stdio::pump;
use crate::stdio::thread;

/// How long the endpoint may still answer after the agent has said its last. It ends by itself within a few
/// seconds; this is for one that hangs.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Carries everything between standard input, the socket, and `output`, which is standard output. It ends
/// when the endpoint has ended, or has said all there is to say to an agent that has left.
pub async fn run(socket: &Path, output: File) -> std::io::Result<()> {
    carry(socket, std::io::stdin(), output).await
}

async fn carry(
    socket: &Path,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> std::io::Result<()> {
    let address = Address::of(socket)?;
    let stream = UnixStream::connect(&address.path).await?.into_std()?;
    stream.set_nonblocking(false)?;
    let stream = Arc::new(stream);
    let (up_ended, up_end) = oneshot::channel();
    let (down_ended, mut down_end) = oneshot::channel();
    let up = stream.clone();
    thread("tenon-shim-up", move || {
        // An endpoint that does not listen any more ends the other direction as well.
        let _ = pump(input, &*up);
        let _ = up.shutdown(Shutdown::Write);
        let _ = up_ended.send(());
    })?;
    thread("tenon-shim-down", move || {
        let _ = down_ended.send(pump(&*stream, output));
    })?;
    let carried = tokio::select! {
        biased;
        carried = &mut down_end => Some(carried),
        _ = up_end => tokio::time::timeout(LAST_WORDS, down_end).await.ok(),
    };
    match carried {
        // An agent that does not read any more has left.
        Some(Ok(Err(error))) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Some(Ok(result)) => result,
        Some(Err(_)) => Err(std::io::Error::other("the writer has panicked")),
        None => Err(ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixListener;

    use super::*;

    /// A standard input that the test writes to, and an output that it reads.
    struct Ends {
        input: std::io::PipeWriter,
        output: std::io::PipeReader,
        shim: tokio::task::JoinHandle<std::io::Result<()>>,
        endpoint: UnixStream,
    }

    async fn start(folder: &Path) -> Ends {
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let (stdin, input) = std::io::pipe().unwrap();
        let (output, stdout) = std::io::pipe().unwrap();
        let shim = tokio::spawn(async move { carry(&socket, stdin, stdout).await });
        let (endpoint, _) = listener.accept().await.unwrap();
        Ends { input, output, shim, endpoint }
    }

    #[tokio::test]
    async fn what_is_said_last_arrives_in_both_directions() {
        let temp = tempfile::tempdir().unwrap();
        let Ends { mut input, mut output, shim, mut endpoint } = start(temp.path()).await;
        input.write_all(b"question\n").unwrap();
        drop(input);
        let mut asked = String::new();
        endpoint.read_to_string(&mut asked).await.unwrap();
        assert_eq!(asked, "question\n");
        endpoint.write_all(b"answer\n").await.unwrap();
        drop(endpoint);
        shim.await.unwrap().unwrap();
        let mut answered = String::new();
        output.read_to_string(&mut answered).unwrap();
        assert_eq!(answered, "answer\n");
    }

    #[tokio::test]
    async fn it_ends_with_the_endpoint_though_the_agent_is_still_there() {
        let temp = tempfile::tempdir().unwrap();
        let Ends { input, output, shim, endpoint } = start(temp.path()).await;
        drop(endpoint);
        shim.await.unwrap().unwrap();
        drop((input, output));
    }

    #[tokio::test]
    async fn a_socket_that_is_not_there_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let missing = carry(&temp.path().join("no"), std::io::empty(), std::io::sink()).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
