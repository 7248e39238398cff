//! The socket side: MCP in lines, for the program that agents start which take no HTTP servers.

use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use rmcp::service::serve_server_with_ct;
use rmcp::transport::TransportAdapterIdentity;
use rmcp::transport::async_rw::AsyncRwTransport;
use tenon_host::private_socket;
use tenon_host::private_socket::Address;
use tenon_host::private_socket::Identity;
use tenon_host::private_socket::SocketFile;
use tenon_host::private_socket::is_same_user;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ACCEPT_AGAIN;
use super::CLOSE_PATIENCE;
use super::MAX_MESSAGE_BYTES;
use super::Shared;
use super::tools::Tools;

/// The most clients at a time; more wait until they are accepted. An agent has one for each of its sessions.
const MAX_CLIENTS: usize = 32;

/// What the file of a socket ends with. Not as those by which sessions are found: nobody asks here.
const EXTENSION: &str = "mcp";

/// Listens at a new socket in a folder that only the user can enter. What dead processes left there goes.
pub(super) async fn listen(folder: &Path) -> std::io::Result<(UnixListener, SocketFile)> {
    private_socket::make_folder(folder)?;
    sweep(folder).await;
    let name = uuid::Uuid::new_v4().simple().to_string();
    let path = folder.join(format!("{name}.{EXTENSION}"));
    private_socket::listen(&path, &folder.join(format!("{name}.new")))
}

/// Removes sockets at which nobody listens.
async fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|it| it == EXTENSION);
    for path in paths.filter(is_socket).collect::<Vec<_>>() {
        let (Ok(file), Ok(address)) = (Identity::of(&path), Address::of(&path)) else { continue };
        let connected = UnixStream::connect(&address.path).await;
        let is_dead = connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
        if is_dead {
            file.remove(&path);
        }
    }
}

/// Accepts clients until the endpoint closes; then those that are there have a moment to end.
pub(super) async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    let seats = Arc::new(Semaphore::new(MAX_CLIENTS));
    let mut clients = JoinSet::new();
    let accepting = async {
        // The semaphore is never closed.
        while let Ok(seat) = seats.clone().acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) if is_same_user(&stream) => {
                    let shared = shared.clone();
                    clients.spawn(async move {
                        let (reader, writer) = stream.into_split();
                        serve_client(shared, reader, writer).await;
                        drop(seat);
                    });
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
            // Who has left is forgotten.
            while clients.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shared.closing.cancelled() => {}
    }
    drop(listener);
    let ending = async { while clients.join_next().await.is_some() {} };
    // The rest is dropped with the set.
    let _ = tokio::time::timeout(CLOSE_PATIENCE, ending).await;
}

/// One client that writes and reads lines, until it leaves. The calls it has running then have a few seconds
/// to be answered.
pub(super) async fn serve_client<R, W>(shared: Arc<Shared>, reader: R, writer: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let gone = CancellationToken::new();
    let closing = shared.closing.child_token();
    let tools = Tools::over_lines(shared, gone.clone());
    let reader = Ending { reader, gone };
    let transport =
        AsyncRwTransport::new_server(reader, writer).with_max_line_length(MAX_MESSAGE_BYTES);
    // One that leaves before it has begun, or begins with nonsense, is not served.
    let served =
        serve_server_with_ct::<_, _, _, TransportAdapterIdentity>(tools, transport, closing).await;
    if let Ok(client) = served {
        let _ = client.waiting().await;
    }
}

/// Says when nothing more comes: subscriptions end then, so that nobody waits for them.
struct Ending<R> {
    reader: R,
    gone: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for Ending<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(cx, buf);
        let is_over = match &polled {
            Poll::Ready(Ok(())) => buf.filled().len() == before && buf.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_over {
            self.gone.cancel();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn what_a_dead_process_left_behind_is_removed_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let dead = temp.path().join(format!("dead.{EXTENSION}"));
        drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
        let other = temp.path().join("session.sock");
        drop(std::os::unix::net::UnixListener::bind(&other).unwrap());
        let (_alive, first) = listen(temp.path()).await.unwrap();
        assert!(!dead.exists() && other.exists());
        let (_listener, second) = listen(temp.path()).await.unwrap();
        assert!(first.path().exists() && second.path().exists());
    }

    #[tokio::test]
    async fn the_end_of_the_input_is_noticed() {
        let gone = CancellationToken::new();
        let mut reader = Ending { reader: &b"text"[..], gone: gone.clone() };
        let mut first = [0; 4];
        reader.read_exact(&mut first).await.unwrap();
        assert!(!gone.is_cancelled());
        assert_eq!(reader.read(&mut first).await.unwrap(), 0);
        assert!(gone.is_cancelled());
    }
}
