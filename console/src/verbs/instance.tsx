/** The image of an instance, which deployments take from the node. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { get, patch } from "../api/client";
import { toast, toastError } from "../components/toasts";
import { part } from "../paths";

type Info = Record<string, unknown>;

const SOURCE = "image_source";
const CHECKSUM = "image_os_hash_value";

/** Shows the image that a deployment installs, to be changed before it. */
export function InstanceFields({ node, saved }: { node: string; saved: () => void }): JSX.Element | null {
    const [info, setInfo] = useState<Info | null>(null);
    const [image, setImage] = useState("");
    const [checksum, setChecksum] = useState("");
    const path = `/v1/nodes/${part(node)}`;
    const show = (found: Info): void => {
        setInfo(found);
        setImage(String(found[SOURCE] ?? ""));
        setChecksum(String(found[CHECKSUM] ?? found["image_checksum"] ?? ""));
    };
    useEffect(() => {
        get<{ instance_info: Info }>(`${path}?fields=instance_info`)
            .then((found) => show(found.instance_info))
            .catch(toastError);
    }, [path]);
    if (info === null) return null;
    const isChanged = image !== String(info[SOURCE] ?? "") || checksum !== String(info[CHECKSUM] ?? info["image_checksum"] ?? "");
    const save = async (): Promise<void> => {
        const values: Info = { [SOURCE]: image, ...(checksum && { [CHECKSUM]: checksum, image_os_hash_algo: hashOf(checksum) }) };
        const changes = Object.entries(values).map(([name, value]) => ({ op: "add", path: `/instance_info/${name}`, value }));
        if (!checksum && CHECKSUM in info) changes.push(...[CHECKSUM, "image_os_hash_algo"].map((name) => ({ op: "remove", path: `/instance_info/${name}`, value: undefined })));
        try {
            const node = await patch<{ instance_info: Info }>(path, changes);
            show(node.instance_info);
            toast("The image is saved with the node.");
            saved();
        } catch (error) {
            toastError(error);
        }
    };
    return (
        <fieldset class="fields">
            <legend>Image of the instance</legend>
            <label class="field">
                <span>Address</span>
                <input
                    type="text"
                    name="image_source"
                    value={image}
                    spellcheck={false}
                    placeholder="https://images.example.com/debian.img"
                    onInput={(event) => setImage(event.currentTarget.value)}
                />
            </label>
            <label class="field">
                <span>Checksum</span>
                <input
                    type="text"
                    name="image_os_hash_value"
                    class="mono"
                    value={checksum}
                    spellcheck={false}
                    onInput={(event) => setChecksum(event.currentTarget.value)}
                />
                <span class="field-note">SHA-256 or SHA-512 of the file</span>
            </label>
            <button type="button" class="button" disabled={!isChanged || !image} onClick={() => void save()}>
                Save with the node
            </button>
        </fieldset>
    );
}

function hashOf(checksum: string): string {
    return checksum.length === 128 ? "sha512" : "sha256";
}
