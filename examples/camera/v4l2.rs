//! A camera of Video4Linux: its frames in memory that the driver shares, by `ioctl`s alone.
//!
//! The structures are those of `linux/videodev2.h`.

use anyhow::{Context as _, Result, bail, ensure};
use diptych::{ColourMatrix, ColourRange, FrameLayout, PixelFormat};
use std::ffi::{c_ulong, c_void};
use std::fs::{File, OpenOptions};
use std::io::Error;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::ptr;

const CAPTURE: u32 = 1;
const MEMORY_MMAP: u32 = 1;
const CAN_CAPTURE: u32 = 1;
const CAN_CAPTURE_PLANES: u32 = 1 << 12;
const CAN_STREAM: u32 = 1 << 26;
const ANY_FIELD: u32 = 0;
/// `V4L2_BUF_FLAG_ERROR`: the frame's data is damaged.
const DAMAGED: u32 = 1 << 6;
/// So many damaged frames in a row are no camera that works.
const MAX_DAMAGED: u32 = 120;

/// What is asked for, in this order.
const FORMATS: [PixelFormat; 5] =
    [PixelFormat::Nv12, PixelFormat::Yuyv, PixelFormat::Uyvy, PixelFormat::I420, PixelFormat::Nv21];

#[repr(C)]
#[derive(Clone, Copy)]
struct Capability {
    driver: [u8; 16],
    card: [u8; 32],
    bus: [u8; 32],
    version: u32,
    capabilities: u32,
    of_this_file: u32,
    reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Picture {
    width: u32,
    height: u32,
    fourcc: u32,
    field: u32,
    row_bytes: u32,
    bytes: u32,
    colour_space: u32,
    private: u32,
    flags: u32,
    matrix: u32,
    range: u32,
    transfer: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
union AnyFormat {
    picture: Picture,
    all: [u8; 200],
    /// Other members have pointers, which align the union.
    pointer: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Format {
    kind: u32,
    of: AnyFormat,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Request {
    count: u32,
    kind: u32,
    memory: u32,
    capabilities: u32,
    flags: [u8; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
union Place {
    offset: u32,
    pointer: c_ulong,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Buffer {
    index: u32,
    kind: u32,
    used: u32,
    flags: u32,
    field: u32,
    time: libc::timeval,
    timecode: [u32; 4],
    sequence: u32,
    memory: u32,
    place: Place,
    length: u32,
    reserved: [u32; 2],
}

impl Buffer {
    fn new(index: u32) -> Self {
        Buffer {
            index,
            kind: CAPTURE,
            used: 0,
            flags: 0,
            field: ANY_FIELD,
            time: libc::timeval { tv_sec: 0, tv_usec: 0 },
            timecode: [0; 4],
            sequence: 0,
            memory: MEMORY_MMAP,
            place: Place { pointer: 0 },
            length: 0,
            reserved: [0; 2],
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Export {
    kind: u32,
    index: u32,
    plane: u32,
    flags: u32,
    file: i32,
    reserved: [u32; 11],
}

const fn code(direction: u64, number: u64, bytes: usize) -> u64 {
    direction << 30 | (bytes as u64) << 16 | (b'V' as u64) << 8 | number
}

const READ: u64 = 2;
const WRITE: u64 = 1;
const QUERYCAP: u64 = code(READ, 0, size_of::<Capability>());
const S_FMT: u64 = code(READ | WRITE, 5, size_of::<Format>());
const REQBUFS: u64 = code(READ | WRITE, 8, size_of::<Request>());
const QUERYBUF: u64 = code(READ | WRITE, 9, size_of::<Buffer>());
const QBUF: u64 = code(READ | WRITE, 15, size_of::<Buffer>());
const EXPBUF: u64 = code(READ | WRITE, 16, size_of::<Export>());
const DQBUF: u64 = code(READ | WRITE, 17, size_of::<Buffer>());
const STREAMON: u64 = code(WRITE, 18, size_of::<u32>());
const STREAMOFF: u64 = code(WRITE, 19, size_of::<u32>());

/// Calls the driver, again where a signal came between.
fn call<T>(file: &File, name: &str, code: u64, argument: &mut T) -> Result<()> {
    loop {
        // SAFETY: the argument is the structure of this call, whose size the code has.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), code as _, ptr::from_mut(argument)) };
        if answer >= 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context(format!("VIDIOC_{name}"));
        }
    }
}

/// Memory of the driver, seen by the program.
struct Mapped {
    begin: *mut c_void,
    bytes: usize,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no frame of it is borrowed any more.
        unsafe { libc::munmap(self.begin, self.bytes) };
    }
}

/// A camera that streams.
pub struct Camera {
    file: File,
    memory: Vec<Mapped>,
    /// How frames lie in each memory.
    pub layout: FrameLayout,
    pub name: String,
}

impl Camera {
    /// Opens a device such as `/dev/video0` and has it stream pictures of about this size.
    pub fn open(path: &Path, size: [u32; 2]) -> Result<Self> {
        let name = path.display();
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| {
            let why = unopened(&path.display().to_string(), error.kind());
            anyhow::Error::new(error).context(why)
        })?;
        let mut told = Capability {
            driver: [0; 16],
            card: [0; 32],
            bus: [0; 32],
            version: 0,
            capabilities: 0,
            of_this_file: 0,
            reserved: [0; 3],
        };
        call(&file, "QUERYCAP", QUERYCAP, &mut told)
            .with_context(|| format!("{name} is no device of Video4Linux"))?;
        let card = String::from_utf8_lossy(&told.card).trim_end_matches('\0').to_owned();
        let able = if told.of_this_file == 0 { told.capabilities } else { told.of_this_file };
        if able & CAN_CAPTURE == 0 && able & CAN_CAPTURE_PLANES != 0 {
            bail!(
                "{name} ({card}) gives planes in buffers of their own (V4L2_CAP_VIDEO_CAPTURE_MPLANE), which this example does not read"
            );
        }
        ensure!(
            able & CAN_CAPTURE != 0,
            "{name} ({card}) captures no pictures: it is another of the camera's devices"
        );
        ensure!(able & CAN_STREAM != 0, "{name} ({card}) does not stream");
        let layout = negotiate(&file, size).with_context(|| format!("{name} ({card})"))?;
        let mut request = Request { count: 4, kind: CAPTURE, memory: MEMORY_MMAP, ..Default::default() };
        call(&file, "REQBUFS", REQBUFS, &mut request)?;
        let mut camera = Camera { file, memory: Vec::new(), layout, name: card };
        for index in 0..request.count {
            let mut buffer = Buffer::new(index);
            call(&camera.file, "QUERYBUF", QUERYBUF, &mut buffer)?;
            ensure!(
                u64::from(buffer.length) >= layout.bytes(),
                "a buffer has {} bytes, a frame {}",
                buffer.length,
                layout.bytes()
            );
            let (bytes, shared) = (buffer.length as usize, libc::MAP_SHARED);
            // SAFETY: the driver gave this place of the file for memory of this length; `Mapped` gives it back.
            let begin = unsafe {
                let place = buffer.place.offset as _;
                libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, shared, camera.file.as_raw_fd(), place)
            };
            if begin == libc::MAP_FAILED {
                return Err(Error::last_os_error()).context("mapping a buffer of the camera");
            }
            camera.memory.push(Mapped { begin, bytes });
            call(&camera.file, "QBUF", QBUF, &mut buffer)?;
        }
        call(&camera.file, "STREAMON", STREAMON, &mut CAPTURE.clone())?;
        Ok(camera)
    }

    /// The dma-buf of each memory, if the driver exports them.
    pub fn exported(&self) -> Result<Vec<OwnedFd>> {
        let one = |index: usize| {
            let mut export = Export {
                kind: CAPTURE,
                index: index as u32,
                flags: libc::O_CLOEXEC as u32,
                ..Default::default()
            };
            call(&self.file, "EXPBUF", EXPBUF, &mut export)?;
            // SAFETY: the driver made it, and nobody else closes it.
            Ok(unsafe { OwnedFd::from_raw_fd(export.file) })
        };
        (0..self.memory.len()).map(one).collect()
    }

    /// Waits for the next frame: `with` is given the index of its memory and its bytes. The driver writes the memory again once
    /// it returns.
    pub fn next(&mut self, with: impl FnOnce(usize, &[u8]) -> Result<()>) -> Result<()> {
        let mut buffer = Buffer::new(0);
        let mut damaged = 0;
        loop {
            call(&self.file, "DQBUF", DQBUF, &mut buffer)?;
            if buffer.flags & DAMAGED == 0 && u64::from(buffer.used) >= self.layout.bytes() {
                break;
            }
            call(&self.file, "QBUF", QBUF, &mut buffer)?;
            damaged += 1;
            ensure!(
                damaged < MAX_DAMAGED,
                "{} gave {damaged} frames in a row that are damaged or short of {} bytes; the last had {}",
                self.name,
                self.layout.bytes(),
                buffer.used
            );
        }
        let index = buffer.index as usize;
        let Mapped { begin, bytes } = self.memory.get(index).context("a buffer that was not asked for")?;
        // SAFETY: it is mapped, and the driver does not write it until it is queued again below.
        let seen = unsafe { std::slice::from_raw_parts(begin.cast::<u8>(), *bytes) };
        let outcome = with(index, seen);
        call(&self.file, "QBUF", QBUF, &mut buffer)?;
        outcome
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        // The file is closed next, which does the same.
        drop(call(&self.file, "STREAMOFF", STREAMOFF, &mut CAPTURE.clone()));
    }
}

/// Why a device was not opened.
fn unopened(name: &str, error: std::io::ErrorKind) -> String {
    match error {
        std::io::ErrorKind::NotFound => {
            format!("there is no camera {name}; `ls /dev/video*` shows those that there are")
        }
        std::io::ErrorKind::PermissionDenied => {
            format!("this user may not open {name}; on most systems those of the group `video` may")
        }
        _ => format!("{name} cannot be opened"),
    }
}

/// Has the driver give a format that frames can have.
fn negotiate(file: &File, [width, height]: [u32; 2]) -> Result<FrameLayout> {
    let mut seen = Vec::new();
    for wanted in FORMATS {
        let fourcc = u32::from_le_bytes(wanted.fourcc());
        let mut format = Format { kind: CAPTURE, of: AnyFormat { all: [0; 200] } };
        format.of.picture = Picture { width, height, fourcc, field: ANY_FIELD, ..Default::default() };
        call(file, "S_FMT", S_FMT, &mut format)?;
        // SAFETY: all bytes are numbers, and the driver filled them for this kind.
        let picture = unsafe { format.of.picture };
        match PixelFormat::from_fourcc(picture.fourcc.to_le_bytes()) {
            Some(format) => return layout(format, &picture),
            None => seen.push(String::from_utf8_lossy(&picture.fourcc.to_le_bytes()).into_owned()),
        }
    }
    seen.dedup();
    bail!("gives {} and none of {FORMATS:?}", seen.join(", "))
}

/// What the driver says of its pictures.
fn layout(format: PixelFormat, picture: &Picture) -> Result<FrameLayout> {
    let layout = FrameLayout::new(format, [picture.width, picture.height])?;
    let layout = if picture.row_bytes == 0 { layout } else { layout.stride(picture.row_bytes)? };
    // `V4L2_MAP_YCBCR_ENC_DEFAULT` and `V4L2_MAP_QUANTIZATION_DEFAULT`. Colour spaces: 2 is that of SMPTE 240M, 3 of BT.709, 7 of
    // JPEG, 10 of BT.2020, 12 of DCI-P3. Matrices: 1 is that of BT.601, 2 of BT.709, 3 and 4 the same of xvYCC, 5 of sYCC, 6 of BT.2020.
    let matrix = match (picture.matrix, picture.colour_space) {
        (2 | 4, _) | (0, 3 | 12) => ColourMatrix::Bt709,
        (6, _) | (0, 10) => ColourMatrix::Bt2020,
        (1 | 3 | 5, _) | (0, 0 | 1 | 4..=9 | 11) => ColourMatrix::Bt601,
        (matrix, space) => bail!(
            "gives luma and chroma of matrix {matrix} in colour space {space} (`linux/videodev2.h`), and those of BT.601, BT.709 \
             and BT.2020 are read"
        ),
    };
    let range = match (picture.range, picture.colour_space) {
        (1, _) | (0, 7) => ColourRange::Full,
        _ => ColourRange::Video,
    };
    Ok(layout.matrix(matrix).range(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of `linux/videodev2.h` where a pointer has 64 bits.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn calls_have_the_numbers_of_the_header() {
        let codes = [QUERYCAP, S_FMT, REQBUFS, QUERYBUF, QBUF, EXPBUF, DQBUF, STREAMON, STREAMOFF];
        let wanted = [
            0x8068_5600,
            0xc0d0_5605,
            0xc014_5608,
            0xc058_5609,
            0xc058_560f,
            0xc040_5610,
            0xc058_5611,
            0x4004_5612,
            0x4004_5613,
        ];
        assert_eq!(codes, wanted, "{codes:x?}");
    }

    #[test]
    fn what_is_no_camera_is_refused() {
        let told =
            |path: &str| format!("{:#}", Camera::open(Path::new(path), [640, 480]).err().expect("refused"));
        let missing = told("/dev/video-none");
        assert!(missing.contains("there is no camera /dev/video-none"), "{missing}");
        let denied = unopened("/dev/video0", std::io::ErrorKind::PermissionDenied);
        assert!(denied.contains("may not open /dev/video0") && denied.contains("group `video`"), "{denied}");
        let other = told("/dev/null");
        assert!(
            other.contains("/dev/null is no device of Video4Linux") && other.contains("VIDIOC_QUERYCAP"),
            "{other}"
        );
    }

    #[test]
    fn a_drivers_words_become_a_layout() {
        let picture =
            Picture { width: 640, height: 480, row_bytes: 1344, colour_space: 8, ..Default::default() };
        let own = layout(PixelFormat::Yuyv, &picture).expect("a layout");
        assert_eq!(own.bytes(), 479 * 1344 + 1280);
        assert_eq!((own.colour().0, own.colour().1), (ColourMatrix::Bt601, ColourRange::Video));
        let picture = Picture { colour_space: 3, range: 1, row_bytes: 0, ..picture };
        let own = layout(PixelFormat::Nv12, &picture).expect("a layout");
        assert_eq!((own.colour().0, own.colour().1), (ColourMatrix::Bt709, ColourRange::Full));
        assert!(layout(PixelFormat::Nv12, &Picture { row_bytes: 639, ..picture }).is_err());
        for (matrix, colour_space, wanted) in [
            (4, 0, Some(ColourMatrix::Bt709)),
            (0, 12, Some(ColourMatrix::Bt709)),
            (3, 12, Some(ColourMatrix::Bt601)),
            (0, 10, Some(ColourMatrix::Bt2020)),
            (0, 2, None),
            (7, 10, None),
            (8, 0, None),
        ] {
            let own = layout(PixelFormat::Nv12, &Picture { matrix, colour_space, ..picture });
            match (own, wanted) {
                (Ok(own), wanted) => assert_eq!(Some(own.colour().0), wanted, "{matrix} {colour_space}"),
                (Err(error), None) => assert!(error.to_string().contains(&format!("matrix {matrix}"))),
                (Err(error), Some(_)) => panic!("{matrix} {colour_space}: {error}"),
            }
        }
    }
}
