//! Synthetic films for the tests: detailed, moving, and the same on every run.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use codec::{Ladder, LayerEncoder, Picture, Preset, downscale_to_base};

/// Picture `time` of a film: a textured ground panning to the left, a square
/// moving over it, and some noise.
pub fn film(width: u32, height: u32, time: u32) -> Picture {
    let mut picture = Picture::new(width, height).unwrap();
    for (number, plane) in picture.planes_mut().into_iter().enumerate() {
        let shift = if number == 0 { 0 } else { 1 };
        for (y, row) in (0_u32..).zip(plane.data.chunks_exact_mut(plane.width)) {
            for (x, sample) in (0_u32..).zip(row) {
                *sample = sample_at(x << shift, y << shift, time, number);
            }
        }
    }
    picture
}

fn sample_at(x: u32, y: u32, time: u32, plane: usize) -> u8 {
    let (px, py) = (x + 3 * time, y + time);
    let waves = (f64::from(px) * 0.21).sin() * 30.0 + (f64::from(py) * 0.13).cos() * 25.0;
    let stripes = if (px / 7 + py / 5) % 3 == 0 { 35.0 } else { 0.0 };
    let noise = f64::from(px.wrapping_mul(2_654_435_761) ^ py.wrapping_mul(40_503)) % 23.0;
    let square = x / 32 == time / 2 && y / 32 == 1;
    let level = if square { 220.0 } else { 80.0 + waves + stripes + noise };
    let scale = if plane == 0 { 1.0 } else { 0.5 };
    (level * scale + 20.0).clamp(0.0, 255.0) as u8
}

/// A stand-in for a decoded Base picture: scaled down and coarsely quantised.
pub fn base_of(source: &Picture, ladder: &Ladder) -> Picture {
    let mut base = downscale_to_base(source, ladder).unwrap();
    for plane in base.planes_mut() {
        plane.data.iter_mut().for_each(|sample| *sample = *sample / 12 * 12 + 5);
    }
    base
}

/// One encoded picture with all that a test compares.
pub struct Shot {
    pub base: Picture,
    pub frames: Vec<bytes::Bytes>,
    pub qualities: Vec<Picture>,
}

impl Shot {
    /// The frames of the lowest `count` enhancement layers.
    pub fn lowest(&self, count: usize) -> Vec<Option<&[u8]>> {
        self.frames.iter().take(count).map(|frame| Some(frame.as_ref())).collect()
    }
}

/// Encodes `pictures` pictures of the film, beginning at `start`, as one block.
pub fn encode_block(encoder: &mut LayerEncoder, ladder: &Ladder, start: u32, pictures: u32) -> Vec<Shot> {
    let (width, height) = ladder.display();
    encoder.start_block().unwrap();
    (start..start + pictures)
        .map(|time| {
            let source = film(width, height, time);
            let base = base_of(&source, ladder);
            let encoded = encoder.encode(&source, &base).unwrap();
            Shot { base, frames: encoded.layers, qualities: encoded.qualities }
        })
        .collect()
}

/// Quantizers for a ladder: coarse below, fine on top.
pub fn quantizers(ladder: &Ladder) -> Vec<u8> {
    (0..ladder.enhancements()).map(|layer| 44 - 12 * layer as u8).collect()
}

/// A ladder and an encoder for it.
pub fn encoder(width: u32, height: u32, factors: &[u8], preset: Preset) -> (Ladder, LayerEncoder) {
    let ladder = Ladder::new(width, height, factors).unwrap();
    let encoder = LayerEncoder::new(&ladder, preset, &quantizers(&ladder)).unwrap();
    (ladder, encoder)
}
