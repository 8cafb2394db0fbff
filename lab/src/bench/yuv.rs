//! Decoded pictures as files and pipes: YUV4MPEG2, which ffmpeg and x264 speak.

use crate::bench::BenchError;
use codec::{CodecError, Picture};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The longest line that a stream may hold, in bytes.
const MAX_LINE: u64 = 512;
/// What stands before a picture.
const FRAME: &[u8] = b"FRAME\n";

/// What a stream says about its pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Width in luma samples.
    pub width: u32,
    /// Height in luma samples.
    pub height: u32,
    /// Pictures a second: numerator and denominator.
    pub rate: (u32, u32),
    /// Whether luma uses 0..255 instead of 16..235.
    pub full_range: bool,
}

/// Why a stream of pictures cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum YuvError {
    /// The pipe or file failed.
    #[error("reading or writing failed")]
    Io(#[from] std::io::Error),
    /// A line that YUV4MPEG2 does not have there.
    #[error("{0:?} is not YUV4MPEG2 with 8-bit 4:2:0 pictures")]
    Line(String),
    /// A size that no picture has.
    #[error("a picture of this size is impossible")]
    Size(#[from] CodecError),
}

impl Header {
    fn parse(line: &str) -> Result<Self, YuvError> {
        let wrong = || YuvError::Line(line.to_owned());
        let mut words = line.split(' ');
        if words.next() != Some("YUV4MPEG2") {
            return Err(wrong());
        }
        let mut header = Self { width: 0, height: 0, rate: (25, 1), full_range: false };
        for word in words {
            let Some((tag, value)) = word.split_at_checked(1) else { continue };
            match tag {
                "W" => header.width = value.parse().map_err(|_| wrong())?,
                "H" => header.height = value.parse().map_err(|_| wrong())?,
                "F" => {
                    let (num, den) = value.split_once(':').ok_or_else(wrong)?;
                    header.rate = (num.parse().map_err(|_| wrong())?, den.parse().map_err(|_| wrong())?);
                }
                "C" if !["420", "420jpeg", "420mpeg2", "420paldv"].contains(&value) => return Err(wrong()),
                "X" if value == "COLORRANGE=FULL" => header.full_range = true,
                _ => {}
            }
        }
        if header.rate.0 == 0 || header.rate.1 == 0 {
            return Err(wrong());
        }
        Ok(header)
    }

    /// Pictures a second, rounded to a whole number, at least 1.
    pub fn pictures_a_second(&self) -> u32 {
        let (num, den) = self.rate;
        ((num + den / 2) / den.max(1)).max(1)
    }
}

/// Reads pictures one after another.
#[derive(Debug)]
pub struct Reader<R> {
    header: Header,
    input: BufReader<R>,
}

impl<R: Read> Reader<R> {
    /// Reads the stream's header.
    pub fn new(input: R) -> Result<Self, YuvError> {
        let mut input = BufReader::with_capacity(1 << 20, input);
        let header = Header::parse(&line(&mut input)?)?;
        // Refuses sizes that no picture has before anything is allocated.
        Picture::new(header.width, header.height)?;
        Ok(Self { header, input })
    }

    /// What the stream says about its pictures.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next picture; none at the end of the stream.
    pub fn picture(&mut self) -> Result<Option<Picture>, YuvError> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let frame = line(&mut self.input)?;
        if !frame.starts_with("FRAME") {
            return Err(YuvError::Line(frame));
        }
        let mut picture = Picture::new(self.header.width, self.header.height)?;
        for plane in picture.planes_mut() {
            self.input.read_exact(plane.data)?;
        }
        Ok(Some(picture))
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Passes over pictures of a stream that [`Writer`] wrote.
    pub fn skip(&mut self, pictures: u64) -> Result<(), YuvError> {
        let picture = Picture::new(self.header.width, self.header.height)?;
        let samples = picture.planes().iter().map(|plane| plane.width() * plane.height()).sum::<usize>();
        let length = u64::try_from(FRAME.len() + samples).unwrap_or(u64::MAX);
        let far = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let offset = pictures.checked_mul(length).and_then(|offset| i64::try_from(offset).ok());
        Ok(self.input.seek_relative(offset.ok_or_else(far)?)?)
    }
}

fn line(input: &mut impl BufRead) -> Result<String, YuvError> {
    let mut bytes = Vec::new();
    input.take(MAX_LINE).read_until(b'\n', &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.strip_suffix('\n').map(str::to_owned).ok_or(YuvError::Line(text))
}

/// Writes pictures one after another.
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Writes the stream's header.
    pub fn new(mut output: W, header: &Header) -> Result<Self, YuvError> {
        let Header { width, height, rate: (num, den), full_range } = header;
        let range = if *full_range { "FULL" } else { "LIMITED" };
        writeln!(output, "YUV4MPEG2 W{width} H{height} F{num}:{den} Ip A1:1 C420jpeg XCOLORRANGE={range}")?;
        Ok(Self(output))
    }

    /// Appends a picture of the header's size.
    pub fn picture(&mut self, picture: &Picture) -> Result<(), YuvError> {
        self.0.write_all(FRAME)?;
        for plane in picture.planes() {
            plane.rows().try_for_each(|row| self.0.write_all(row))?;
        }
        Ok(())
    }

    /// Gives the output back, everything written.
    pub fn finish(mut self) -> Result<W, YuvError> {
        self.0.flush()?;
        Ok(self.0)
    }
}

/// A film that ffmpeg decodes: 8-bit 4:2:0 pictures in display order, each once.
#[derive(Debug)]
pub struct Film {
    what: String,
    decoder: Child,
    pictures: Reader<ChildStdout>,
}

impl Film {
    /// Starts to decode a file that ffmpeg can read.
    pub fn open(path: &Path) -> Result<Self, BenchError> {
        let what = path.display().to_string();
        let mut decoder = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-i"])
            .arg(path)
            .args(["-map", "0:v:0", "-fps_mode", "passthrough", "-vf", "format=yuv420p|yuvj420p"])
            .args(["-f", "yuv4mpegpipe", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| BenchError::Missing { program: "ffmpeg", source })?;
        let Some(output) = decoder.stdout.take() else {
            return Err(BenchError::Program { program: "ffmpeg", why: "it has no output".to_owned() });
        };
        match Reader::new(output) {
            Ok(pictures) => Ok(Self { what, decoder, pictures }),
            Err(source) => {
                end(&mut decoder);
                Err(BenchError::Pictures { what, source })
            }
        }
    }

    /// What the stream says about its pictures.
    pub fn header(&self) -> &Header {
        self.pictures.header()
    }

    /// The next picture; none at the end.
    pub fn picture(&mut self) -> Result<Option<Picture>, BenchError> {
        let wrap = |source| BenchError::Pictures { what: self.what.clone(), source };
        self.pictures.picture().map_err(wrap)
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        end(&mut self.decoder);
    }
}

/// A decoder that nobody listens to any more is not left running.
fn end(decoder: &mut Child) {
    let _ = decoder.kill();
    let _ = decoder.wait();
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn header() -> Header {
        Header { width: 3, height: 2, rate: (30000, 1001), full_range: true }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let planes: [(&[u8], usize); 3] = [(&[1, 2, 3, 4, 5, 6], 3), (&[7, 8], 2), (&[9, 10], 2)];
        let picture = Picture::from_planes(3, 2, planes).unwrap();
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        writer.picture(&picture).unwrap();
        let bytes = writer.finish().unwrap();
        assert!(bytes.ends_with(b"FRAME\n\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a"));

        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        assert_eq!(reader.header(), &header());
        assert_eq!(reader.header().pictures_a_second(), 30);
        assert_eq!(reader.picture().unwrap(), Some(picture));
        assert_eq!(reader.picture().unwrap(), None);
    }

    #[test]
    fn pictures_can_be_passed_over() {
        let grey = |luma| {
            let mut picture = Picture::new(3, 2).unwrap();
            picture.planes_mut().into_iter().take(1).for_each(|plane| plane.data.fill(luma));
            picture
        };
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        (0..5).for_each(|luma| writer.picture(&grey(luma)).unwrap());
        let mut reader = Reader::new(std::io::Cursor::new(writer.finish().unwrap())).unwrap();
        reader.skip(3).unwrap();
        assert_eq!(reader.picture().unwrap(), Some(grey(3)));
    }

    #[test]
    fn a_stream_of_another_kind_is_refused() {
        let refused = |text: &str| Reader::new(text.as_bytes()).unwrap_err();
        assert!(matches!(refused("RIFF W3 H2\n"), YuvError::Line(_)));
        assert!(matches!(refused("YUV4MPEG2 W3 H2 F25:1 C422\n"), YuvError::Line(_)));
        assert!(matches!(refused("YUV4MPEG2 W3 H2 F0:1\n"), YuvError::Line(_)));
        assert!(matches!(refused("YUV4MPEG2 W90000 H2 F25:1\n"), YuvError::Size(_)));
        assert!(matches!(refused(&format!("YUV4MPEG2 {}", "W3 ".repeat(400))), YuvError::Line(_)));

        let cut = "YUV4MPEG2 W3 H2 F25:1\nFRAME\n\x01\x02";
        assert!(matches!(Reader::new(cut.as_bytes()).unwrap().picture(), Err(YuvError::Io(_))));
    }
}
