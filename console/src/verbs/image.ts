/** The image in the `instance_info` of a node: what is shown of it, and the operations that change it. */

export type Info = Record<string, unknown>;

export interface Image {
    source: string;
    checksum: string;
}

const SOURCE = "image_source";
const CHECKSUM = "image_os_hash_value";
const ALGORITHM = "image_os_hash_algo";
const OLD_CHECKSUM = "image_checksum"; // MD5, or with the same meaning as the two others together

/** Return the image that deployments install. */
export function imageOf(info: Info): Image {
    return { source: String(info[SOURCE] ?? ""), checksum: String(info[CHECKSUM] ?? info[OLD_CHECKSUM] ?? "") };
}

/** Return what is typed without blanks around it, which no address and no checksum has. */
export function trimImage({ source, checksum }: Image): Image {
    return { source: source.trim(), checksum: checksum.trim() };
}

/** Return whether another image is meant than the one that is saved. */
export function isOther(info: Info, image: Image): boolean {
    const [saved, meant] = [imageOf(info), trimImage(image)];
    return saved.source !== meant.source || saved.checksum !== meant.checksum;
}

function hashOf(checksum: string): string {
    return checksum.length === 128 ? "sha512" : "sha256";
}

interface Change {
    op: "add" | "remove";
    path: string;
    value?: unknown;
}

/** Return the operations that save an image; a checksum of another image does not stay. */
export function changesOf(info: Info, image: Image): Change[] {
    const { source, checksum } = trimImage(image);
    const values: Info = { [SOURCE]: source };
    if (checksum !== imageOf(info).checksum) {
        values[CHECKSUM] = checksum;
        values[ALGORITHM] = checksum && hashOf(checksum);
        values[OLD_CHECKSUM] = "";
    }
    return Object.entries(values).flatMap(([name, value]): Change[] => {
        const path = `/instance_info/${name}`;
        if (value) return [{ op: "add", path, value }];
        return name in info ? [{ op: "remove", path }] : [];
    });
}
