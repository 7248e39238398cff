//! A socket that passes open files along with bytes.

use std::io;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;

/// The most descriptors that come with one read; more are closed by the system.
const MAX_AT_ONCE: usize = 8;

/// Room for the control data of [`MAX_AT_ONCE`] descriptors, aligned as the system wants it.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 128]);

/// Sends bytes, and the descriptors with the first of them; returns how many bytes the socket took. At most
/// eight descriptors.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let descriptors = &descriptors[..descriptors.len().min(MAX_AT_ONCE)];
    let size = (size_of::<RawFd>() * descriptors.len()) as u32;
    let mut control = Control([MaybeUninit::zeroed(); 128]);
    let slice = IoSlice::new(bytes);
    // SAFETY: all-zero is a valid msghdr; the pointers set below are to locals that outlive the call, and
    // CMSG_FIRSTHDR gives a place inside `control`, which has room for all descriptors.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = std::ptr::from_ref(&slice).cast_mut().cast();
        message.msg_iovlen = 1;
        if !descriptors.is_empty() {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as _;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            for (index, descriptor) in descriptors.iter().enumerate() {
                std::ptr::write_unaligned(data.add(index), descriptor.as_raw_fd());
            }
        }
        libc::sendmsg(socket.as_fd().as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) => Ok(sent),
        Err(_) => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                send(socket, bytes, descriptors)
            } else {
                Err(error)
            }
        }
    }
}

/// Reads some bytes to the end of `bytes`, and whatever descriptors come with them. No byte: the end.
pub fn receive(
    socket: impl AsFd,
    bytes: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut control = Control([MaybeUninit::zeroed(); 128]);
    let mut room = [0_u8; 16 * 1024];
    let mut slice = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: as above; the system writes at most as much as the lengths say, into locals. The descriptors
    // it gives are new and ours alone.
    let count = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut slice;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE((MAX_AT_ONCE * size_of::<RawFd>()) as u32) as _;
        let count =
            libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        if count >= 0 {
            let mut header = libc::CMSG_FIRSTHDR(&message);
            while !header.is_null() {
                if (*header).cmsg_level == libc::SOL_SOCKET
                    && (*header).cmsg_type == libc::SCM_RIGHTS
                {
                    let data = libc::CMSG_DATA(header).cast::<RawFd>();
                    let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                    for index in 0..bytes / size_of::<RawFd>() {
                        let descriptor = std::ptr::read_unaligned(data.add(index));
                        descriptors.push(OwnedFd::from_raw_fd(descriptor));
                    }
                }
                header = libc::CMSG_NXTHDR(&message, header);
            }
        }
        count
    };
    let count = match usize::try_from(count) {
        Ok(count) => count,
        Err(_) => {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                receive(socket, bytes, descriptors)
            } else {
                Err(error)
            };
        }
    };
    bytes.extend_from_slice(&room[..count]);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_descriptor_arrives_with_its_bytes() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        assert_eq!(send(&ours, b"take this", &[writer.as_fd(), ours.as_fd()]).unwrap(), 9);
        drop(writer);
        let (mut bytes, mut descriptors) = (Vec::new(), Vec::new());
        assert_eq!(receive(&theirs, &mut bytes, &mut descriptors).unwrap(), 9);
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"take this"[..], 2));
        std::fs::File::from(descriptors.remove(0)).write_all(b"hello").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn the_end_is_no_byte() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        let (mut bytes, mut descriptors) = (Vec::new(), Vec::new());
        assert_eq!(receive(&theirs, &mut bytes, &mut descriptors).unwrap(), 0);
    }
}
