//! What the process of an extension says.
//!
//! A task reads it. Whoever waits for a reply may look for it as well, and then takes whatever has come in its own thread:
//! handing a reply over to another thread takes as long as many handlers do.

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::future::poll_fn;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tenon_protocol::limits::MAX_LOADED_FILES;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::wire::Decoder;
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

/// How it ended.
#[derive(Debug)]
pub enum End {
    /// With its last message.
    Said(EndReason),
    /// With something that is no message.
    Garbled(String),
    /// Its socket was closed.
    Closed,
}

/// What takes the messages. It must not wait, and must not look for messages of the same process.
type Receive = Box<dyn Fn(FromIsolate) + Send + Sync>;

/// The reading end of the socket to an extension's process.
pub struct Incoming {
    receive: Receive,
    /// Whoever holds it reads, and passes on what it has read, so messages keep their order.
    state: Mutex<State>,
}

struct State {
    reader: OwnedReadHalf,
    decoder: Decoder,
    /// How many files it says it was made from.
    loaded_files: usize,
    end: Option<End>,
    /// The end was reported, and nothing counts after it.
    is_over: bool,
}

impl Incoming {
    pub fn new(
        reader: OwnedReadHalf,
        receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let decoder = Decoder::default();
        let state = State { reader, decoder, loaded_files: 0, end: None, is_over: false };
        Arc::new(Self { receive: Box::new(receive), state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Passes a message on.
    pub fn receive(&self, message: FromIsolate) {
        (self.receive)(message);
    }

    /// Reads until the end.
    pub async fn read(&self) -> End {
        poll_fn(|cx| {
            let mut state = self.lock();
            loop {
                self.pass_on(&mut state);
                if let Some(end) = state.end.take() {
                    state.is_over = true;
                    return Poll::Ready(end);
                }
                let State { reader, decoder, end, .. } = &mut *state;
                // It reads once and keeps nothing, so it can be made anew for every poll.
                match pin!(reader.read_buf(decoder.room())).poll(cx) {
                    Poll::Ready(Ok(0) | Err(_)) => *end = Some(End::Closed),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// Takes what has come, if nobody else is about to. The task is woken by it, too, and finds nothing left; the end is
    /// left to it.
    pub fn look(&self) {
        let Some(mut state) = self.state.try_lock() else { return };
        let State { reader, decoder, end, is_over, .. } = &mut *state;
        if end.is_none() && !*is_over && receive_now(reader.as_ref().as_fd(), decoder.room()) > 0 {
            self.pass_on(&mut state);
        }
    }

    /// Passes on every whole message, up to the end.
    fn pass_on(&self, state: &mut State) {
        while state.end.is_none() {
            match state.decoder.take::<FromIsolate>() {
                Ok(Some(FromIsolate::Ended(reason))) => {
                    state.end = Some(End::Said(reason.said_by_extension()));
                }
                Ok(Some(FromIsolate::Loaded { files })) => {
                    state.loaded_files += files.len();
                    if state.loaded_files > MAX_LOADED_FILES {
                        let problem =
                            format!("it was made from more than {MAX_LOADED_FILES} files");
                        state.end = Some(End::Garbled(problem));
                    } else {
                        self.receive(FromIsolate::Loaded { files });
                    }
                }
                Ok(Some(message)) => self.receive(message),
                Ok(None) => return,
                Err(error) => state.end = Some(End::Garbled(error.to_string())),
            }
        }
    }
}

/// Appends what a socket has, up to the room there is; how many bytes that were. It bypasses the event loop, which asks the
/// system only after that has told it that there is something.
fn receive_now(socket: BorrowedFd<'_>, bytes: &mut Vec<u8>) -> usize {
    let room = bytes.spare_capacity_mut();
    // SAFETY: the system writes into the room, at most as much as there is.
    let count = unsafe {
        libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT)
    };
    // The end, and every error, are for the task to find.
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: so many bytes after the last one were just written.
    unsafe { bytes.set_len(bytes.len() + count) };
    count
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use tenon_protocol::message::LoadedFile;
    use tenon_protocol::message::ScriptError;
    use tenon_protocol::wire;
    use tokio::net::UnixStream;

    use super::*;

    fn connected() -> (std::os::unix::net::UnixStream, Arc<Incoming>, mpsc::Receiver<u64>) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (reader, writer) = UnixStream::from_std(ours).unwrap().into_split();
        writer.forget();
        let (sender, calls) = mpsc::channel();
        let receive = move |message| {
            if let FromIsolate::Reply { call, .. } = message {
                sender.send(call).unwrap();
            }
        };
        (theirs, Incoming::new(reader, receive), calls)
    }

    fn reply(call: u64) -> Vec<u8> {
        let result = Err(ScriptError::message("x"));
        wire::encode(&FromIsolate::Reply { call, result }).unwrap()
    }

    #[tokio::test]
    async fn a_look_takes_what_has_come_and_the_task_the_rest() {
        let (mut theirs, incoming, calls) = connected();
        incoming.look();
        assert!(calls.try_recv().is_err());
        let second = reply(2);
        theirs.write_all(&reply(1)).unwrap();
        theirs.write_all(&second[..7]).unwrap();
        incoming.look();
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [1]);
        theirs.write_all(&second[7..]).unwrap();
        theirs.write_all(&reply(3)).unwrap();
        drop(theirs);
        assert!(matches!(incoming.read().await, End::Closed));
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [2, 3]);
    }

    #[tokio::test]
    async fn the_end_that_a_look_finds_is_left_to_the_task() {
        let (mut theirs, incoming, calls) = connected();
        theirs.write_all(&reply(1)).unwrap();
        let end = wire::encode(&FromIsolate::Ended(EndReason::Stopped)).unwrap();
        theirs.write_all(&end).unwrap();
        theirs.write_all(&reply(2)).unwrap();
        incoming.look();
        incoming.look();
        assert!(matches!(incoming.read().await, End::Said(EndReason::Stopped)));
        theirs.write_all(&reply(3)).unwrap();
        incoming.look();
        // Nothing counts after the last message.
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn an_extension_cannot_say_that_the_zygote_has_died() {
        let (mut theirs, incoming, _calls) = connected();
        let reason = EndReason::ProcessDied { how: "x".into(), with_zygote: true };
        theirs.write_all(&wire::encode(&FromIsolate::Ended(reason)).unwrap()).unwrap();
        let end = incoming.read().await;
        assert!(
            matches!(end, End::Said(EndReason::ProcessDied { with_zygote: false, .. })),
            "{end:?}"
        );
    }

    #[tokio::test]
    async fn a_load_of_too_many_files_is_the_end() {
        let (mut theirs, incoming, _calls) = connected();
        let file = LoadedFile {
            path: "/x".into(),
            hash: String::new(),
            is_package: false,
            is_refused: false,
        };
        let sent = std::thread::spawn(move || {
            for count in [MAX_LOADED_FILES, 1] {
                let files = vec![file.clone(); count];
                theirs.write_all(&wire::encode(&FromIsolate::Loaded { files }).unwrap()).unwrap();
            }
        });
        let End::Garbled(problem) = incoming.read().await else { unreachable!("it goes on") };
        assert!(problem.contains("files"), "{problem}");
        sent.join().unwrap();
    }

    #[tokio::test]
    async fn what_is_no_message_is_the_end() {
        let (mut theirs, incoming, _calls) = connected();
        theirs.write_all(&u32::MAX.to_le_bytes()).unwrap();
        incoming.look();
        assert!(matches!(incoming.read().await, End::Garbled(_)));
    }
}
