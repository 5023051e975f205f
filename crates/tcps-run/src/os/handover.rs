//! A file descriptor from one process to another, over a Unix socket (SCM_RIGHTS), with the number of its node.

#![expect(unsafe_code, reason = "descriptors go by control messages of the kernel")]

use std::{
    fs::File,
    io,
    mem::{size_of, zeroed},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    path::Path,
};
use tcps_core::ids::NodeId;

const FD_BYTES: u32 = size_of::<RawFd>() as u32;

/// Room for one descriptor, aligned as control messages want it.
#[repr(align(8))]
struct Control([u8; 64]);

/// Hands a descriptor of a node to the process that listens at `path`.
pub fn send(path: &Path, node: NodeId, fd: RawFd) -> io::Result<()> {
    let stream = UnixStream::connect(path)?;
    let mut number = node.0.to_ne_bytes();
    let (mut part, mut control) = (part(&mut number), Control([0; 64]));
    let mut message = message(&mut part, &mut control);
    // SAFETY: the control buffer has room for one descriptor, and every pointer in `message` is to a live local.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(FD_BYTES) as _;
        let c = libc::CMSG_FIRSTHDR(&message);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(FD_BYTES) as _;
        libc::CMSG_DATA(c).cast::<RawFd>().write_unaligned(fd);
        libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The node and the descriptor that came over a connection.
pub fn receive(stream: &UnixStream) -> io::Result<(NodeId, File)> {
    let mut number = [0; 2];
    let (mut part, mut control) = (part(&mut number), Control([0; 64]));
    let mut message = message(&mut part, &mut control);
    // SAFETY: every pointer in `message` is to a live local with its right length; the kernel fills the control buffer,
    // the CMSG macros stay inside it, and a received descriptor belongs to nobody else.
    let file = unsafe {
        if libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) != 2 {
            return Err(io::Error::last_os_error());
        }
        let c = libc::CMSG_FIRSTHDR(&message);
        if c.is_null() || ((*c).cmsg_level, (*c).cmsg_type) != (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no descriptor came"));
        }
        OwnedFd::from_raw_fd(libc::CMSG_DATA(c).cast::<RawFd>().read_unaligned())
    };
    Ok((NodeId(u16::from_ne_bytes(number)), file.into()))
}

fn part(bytes: &mut [u8; 2]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all-zero bytes are valid for this plain C structure.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read, io::Write, os::unix::net::UnixListener};

    #[test]
    fn a_descriptor_arrives_with_its_number() {
        let place = std::env::temp_dir().join(format!("tcps-handover-{}", std::process::id()));
        let listener = UnixListener::bind(&place).unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        send(&place, NodeId(515), far.as_raw_fd()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        std::fs::remove_file(&place).unwrap();
        let (node, mut file) = receive(&stream).unwrap();
        drop(far);
        near.write_all(b"hand").unwrap();
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes).unwrap();
        assert_eq!((node, &bytes), (NodeId(515), b"hand"));
    }
}
