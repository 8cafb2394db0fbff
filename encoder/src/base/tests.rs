use super::*;

fn format(size: (u32, u32)) -> BaseFormat {
    let colorimetry = "bt709".parse().unwrap();
    BaseFormat {
        size,
        rate: (25, 1),
        look: Look { colorimetry, pixel_aspect: (1, 1) },
        crf: 30,
        effort: "medium",
    }
}

/// A gradient that moves.
fn pictures(size: (u32, u32), count: u32) -> Vec<Picture> {
    let one = |t: u32| {
        let mut picture = Picture::new(size.0, size.1).unwrap();
        let [luma, ..] = picture.planes_mut();
        let width = luma.width;
        for (at, sample) in luma.data.iter_mut().enumerate() {
            let (x, y) = (u32::try_from(at % width).unwrap(), u32::try_from(at / width).unwrap());
            *sample = u8::try_from(((x + 3 * t) ^ (y + t)) & 255).unwrap();
        }
        picture
    };
    (0..count).map(one).collect()
}

#[test]
fn a_block_is_one_group_with_b_frames_and_comes_back_in_order() {
    gst::init().unwrap();
    let pictures = pictures((162, 122), 25);
    let block = encode(&format((162, 122)), pictures.clone()).unwrap();
    let order: Vec<usize> = block.samples.iter().map(|(index, _)| *index).collect();
    assert_ne!(order, (0..25).collect::<Vec<_>>(), "B-frames are decoded out of order");
    assert!(order.iter().enumerate().all(|(at, index)| index + 2 >= at));
    let decoded = decode(&block.config, (162, 122), block.samples.iter().map(|(i, d)| (*i, d))).unwrap();
    for (source, decoded) in pictures.iter().zip(&decoded) {
        assert!(codec::metrics::psnr_y(source, decoded).unwrap() > 25.0, "each picture is where it belongs");
    }
}

/// Leaves `value` all over the heap.
fn litter(value: u8) {
    let pieces: Vec<Vec<u8>> = (1..400).map(|n| vec![value; n * 331]).collect();
    assert!(pieces.iter().all(|piece| piece.last() == Some(&value)));
}

#[test]
fn what_lies_in_memory_has_no_influence() {
    gst::init().unwrap();
    for size in [(96, 64), (162, 122), (320, 180)] {
        let pictures = pictures(size, 20);
        let coded = [0, 1, 85, 170, 255].map(|value| {
            litter(value);
            encode(&format(size), pictures.clone()).unwrap().samples
        });
        assert!(coded.windows(2).all(|pair| pair[0] == pair[1]), "{size:?}");
    }
}

#[test]
fn blocks_do_not_depend_on_each_other_and_share_their_parameter_sets() {
    gst::init().unwrap();
    let long = pictures((96, 54), 30);
    let again = encode(&format((96, 54)), long.clone()).unwrap();
    let first = encode(&format((96, 54)), long.clone()).unwrap();
    assert_eq!(first.samples, again.samples);
    let short = encode(&format((96, 54)), long[..1].to_vec()).unwrap();
    assert_eq!(nal::parameter_sets(&short.config), nal::parameter_sets(&first.config));
}

#[test]
fn what_is_no_stream_is_an_error() {
    gst::init().unwrap();
    let block = encode(&format((96, 64)), pictures((96, 64), 5)).unwrap();
    let garbage = Bytes::from_static(&[0, 0, 0, 3, 0x65, 1, 2]);
    assert!(decode(&block.config, (96, 64), [(0, &garbage)]).is_err());
    let whole = || block.samples.iter().map(|(i, d)| (*i, d));
    assert!(decode(&block.config, (94, 64), whole()).is_err(), "another size than the manifest's");
    assert!(decode(&block.config, (96, 64), whole().skip(1)).is_err(), "the first picture is missing");
}
