//! 8-bit 4:2:0 pictures.

use crate::error::CodecError;
use media::hash::Hasher;

/// The longest side of a picture, in luma samples.
pub const MAX_SIDE: u32 = 16_384;

/// One 8-bit 4:2:0 picture: planes Y, U, V, packed (stride = plane width).
///
/// Any size from 1x1; chroma planes have `ceil(width / 2)` x `ceil(height / 2)`
/// samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    planes: [Vec<u8>; 3],
}

/// A borrowed plane: `height` rows of `width` samples, `stride` bytes apart.
#[derive(Debug, Clone, Copy)]
pub struct PlaneRef<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) stride: usize,
}

/// A borrowed picture, its planes with any stride.
#[derive(Debug, Clone, Copy)]
pub struct PictureRef<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) planes: [PlaneRef<'a>; 3],
}

/// A plane that can be written: rows of `stride` bytes, packed.
#[derive(Debug)]
pub struct PlaneMut<'a> {
    /// The samples, rows after one another.
    pub data: &'a mut [u8],
    /// Samples in a row, which is also the distance between rows.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

pub(crate) fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Width and height of a plane (0 = Y, 1 = U, 2 = V) of a picture.
pub(crate) fn plane_size(plane: usize, width: u32, height: u32) -> (usize, usize) {
    let side = |side: u32| index(if plane == 0 { side } else { side.div_ceil(2) });
    (side(width), side(height))
}

impl Picture {
    /// A grey picture (every sample 128). Sides are bounded by [`MAX_SIDE`].
    pub fn new(width: u32, height: u32) -> Result<Self, CodecError> {
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            return Err(CodecError::PictureSize { width, height });
        }
        let plane = |plane| {
            let (width, height) = plane_size(plane, width, height);
            vec![128; width * height]
        };
        Ok(Self { width, height, planes: [plane(0), plane(1), plane(2)] })
    }

    /// Copies planes Y, U, V, each with its stride in bytes (at least the
    /// plane's width).
    pub fn from_planes(width: u32, height: u32, planes: [(&[u8], usize); 3]) -> Result<Self, CodecError> {
        let mut picture = Self::new(width, height)?;
        picture.copy_from(PictureRef::new(width, height, planes)?);
        Ok(picture)
    }

    /// Width in luma samples.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in luma samples.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Width and height in luma samples.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The picture as a view.
    pub fn view(&self) -> PictureRef<'_> {
        let [y, u, v] = &self.planes;
        let plane = |plane, data| {
            let (width, height) = plane_size(plane, self.width, self.height);
            PlaneRef { data, width, height, stride: width }
        };
        PictureRef { width: self.width, height: self.height, planes: [plane(0, y), plane(1, u), plane(2, v)] }
    }

    /// The planes Y, U, V.
    pub fn planes(&self) -> [PlaneRef<'_>; 3] {
        self.view().planes
    }

    /// The planes Y, U, V, to be written.
    pub fn planes_mut(&mut self) -> [PlaneMut<'_>; 3] {
        let (picture_width, picture_height) = self.size();
        let plane = |plane, data| {
            let (width, height) = plane_size(plane, picture_width, picture_height);
            PlaneMut { data, width, height }
        };
        let [y, u, v] = &mut self.planes;
        [plane(0, y), plane(1, u), plane(2, v)]
    }

    /// Crops to the top-left `width` x `height`, or extends to it by
    /// repeating the last column and row.
    pub fn resized_canvas(&self, width: u32, height: u32) -> Result<Self, CodecError> {
        let mut canvas = Self::new(width, height)?;
        canvas.copy_from(self.view());
        Ok(canvas)
    }

    /// Overwrites this picture with another one, cropped or extended to this
    /// one's size.
    pub fn copy_from(&mut self, source: PictureRef<'_>) {
        for (to, from) in self.planes_mut().into_iter().zip(source.planes) {
            let mut rows = from.rows();
            let mut last: &[u8] = &[];
            for row in to.data.chunks_exact_mut(to.width.max(1)) {
                last = rows.next().unwrap_or(last);
                let copied = last.len().min(row.len());
                let (inside, outside) = row.split_at_mut(copied);
                if let Some(last) = last.get(..copied) {
                    inside.copy_from_slice(last);
                }
                outside.fill(last.last().copied().unwrap_or(128));
            }
        }
    }

    /// Appends the rows of Y, then U, then V, without padding, to a hash.
    pub fn hash_into(&self, hasher: &mut Hasher) {
        for plane in &self.planes {
            hasher.update(plane);
        }
    }
}

impl<'a> PictureRef<'a> {
    /// A view of planes Y, U, V, each with its stride in bytes.
    pub fn new(width: u32, height: u32, planes: [(&'a [u8], usize); 3]) -> Result<Self, CodecError> {
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            return Err(CodecError::PictureSize { width, height });
        }
        let plane = |plane, (data, stride): (&'a [u8], usize)| {
            let (width, height) = plane_size(plane, width, height);
            let needed = stride.saturating_mul(height - 1).saturating_add(width);
            if stride < width || data.len() < needed {
                return Err(CodecError::PlaneTooShort { plane, found: data.len(), needed });
            }
            Ok(PlaneRef { data, width, height, stride })
        };
        let [y, u, v] = planes;
        Ok(Self { width, height, planes: [plane(0, y)?, plane(1, u)?, plane(2, v)?] })
    }

    /// Width and height in luma samples.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The planes Y, U, V.
    pub fn planes(&self) -> [PlaneRef<'a>; 3] {
        self.planes
    }

    /// The top-left part of the picture, at most `width` x `height`.
    #[must_use]
    pub fn cropped(self, width: u32, height: u32) -> Self {
        let (width, height) = (width.clamp(1, self.width), height.clamp(1, self.height));
        let mut cropped = Self { width, height, ..self };
        for (number, plane) in cropped.planes.iter_mut().enumerate() {
            let (width, height) = plane_size(number, width, height);
            *plane = PlaneRef { width, height, ..*plane };
        }
        cropped
    }

    /// A packed copy.
    pub fn to_picture(&self) -> Result<Picture, CodecError> {
        let mut picture = Picture::new(self.width, self.height)?;
        picture.copy_from(*self);
        Ok(picture)
    }
}

impl<'a> PlaneRef<'a> {
    /// Samples in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The rows, top first, without padding.
    pub fn rows(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let width = self.width;
        self.data.chunks(self.stride.max(1)).take(self.height).filter_map(move |row| row.get(..width))
    }

    /// One row; rows outside repeat the first or last.
    pub(crate) fn row_clamped(&self, row: isize) -> &'a [u8] {
        let row = usize::try_from(row).unwrap_or(0).min(self.height.saturating_sub(1));
        let start = row * self.stride;
        self.data.get(start..start + self.width).unwrap_or(&[])
    }
}
